"""Named settings of users: views of lists, queries of the query tool, mappings of spreadsheets.

Each belongs to a user. Others can use a shared one with their own rights, but not change it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy

from foundation import errors
from foundation.fields import guid_primary_key
from identity.models import User

NAME_CHARACTERS = 80
#: Maximum length of a list's query string, of a saved query's path, of a column's name in its chart.
QUERY_CHARACTERS, PATH_CHARACTERS, COLUMN_CHARACTERS = 2000, 4000, 200
#: Maximum settings of one kind that a user may save; maximum shared settings of others that are listed.
MOST_OF_USER, MOST_SHARED = 100, 200


class SavedSetting(models.Model):
    """A setting that a user saved under a name.

    is_shared   others may use it, too
    full        the error for more than MOST_OF_USER
    """

    id = guid_primary_key()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=NAME_CHARACTERS)
    is_shared = models.BooleanField(default=False)

    objects: ClassVar[models.Manager[Self]]
    full: ClassVar[Any]

    class Meta:
        abstract = True


class SavedView(SavedSetting):
    """Columns, filters, order and search of a list.

    repository   dotted name of the list's repository
    query        the list's query string, with names of columns (domain.admin.saved_views)
    is_default   the user's list without a query string is this view
    """

    repository = models.CharField(max_length=128)
    query = models.CharField(max_length=QUERY_CHARACTERS, blank=True)
    is_default = models.BooleanField(default=False)

    full = gettext_lazy("You have %(count)s views, which is the most. Delete one that you no longer need.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "repository", "name"], name="saved_view_name"),
            models.UniqueConstraint(
                fields=["user", "repository"], condition=models.Q(is_default=True), name="saved_view_default"
            ),
        ]
        indexes = [models.Index(fields=["repository", "is_shared"], name="saved_view_repository")]


class SavedQuery(SavedSetting):
    """A GET request.

    path        path and query below the service root, as typed
    chart       the chart of its rows (domain.api_site.query_charts.ChartChoice); None: no chart
    on_home_of  users whose home page has a tile of the query: its owner and, while it is shared, others
    """

    path = models.CharField(max_length=PATH_CHARACTERS)
    chart = models.JSONField(null=True)
    on_home_of = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")

    full = gettext_lazy("You have %(count)d saved queries; delete one first.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_query_name")]
        indexes = [models.Index(fields=["is_shared", "name"], name="saved_query_shared")]


class SavedMapping(SavedSetting):
    """A mapping of sheets and columns (domain.odata.sheets.mapping)."""

    mapping = models.JSONField()

    full = gettext_lazy("You have %(count)d saved mappings; delete one first.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_mapping_name")]
        indexes = [models.Index(fields=["is_shared", "name"], name="saved_mapping_shared")]


S = TypeVar("S", bound=SavedSetting)


def usable_by(user_id: object) -> Q:
    """The condition of settings that are the user's, or shared."""
    return Q(user_id=user_id) | Q(is_shared=True)


def settings_list(known: QuerySet[S], user_id: object) -> list[S]:
    """The user's own settings, then at most MOST_SHARED shared ones of others, each part by name."""
    ordered = known.order_by("name", "id")
    return [*ordered.filter(user_id=user_id), *ordered.filter(is_shared=True).exclude(user_id=user_id)[:MOST_SHARED]]


def setting_save(kind: type[S], user_id: object, values: Mapping[str, Any], **key: Any) -> S:
    """Save a setting, or replace the user's setting with this key. Raises Refused for more than MOST_OF_USER."""
    with transaction.atomic():
        # Serialize a user's saves: two concurrent ones could exceed MOST_OF_USER.
        User.objects.select_for_update().get(pk=user_id)
        own = kind.objects.filter(user_id=user_id)
        if not own.filter(**key).exists() and own.count() >= MOST_OF_USER:
            raise errors.Refused(errors.VALIDATION_FAILED, kind.full % {"count": MOST_OF_USER})
        return kind.objects.update_or_create(user_id=user_id, **key, defaults=values)[0]


def setting_delete(kind: type[SavedSetting], user_id: object, id: UUID) -> None:
    """Delete a setting of the user. Raises NotFound, also for settings of others."""
    if not kind.objects.filter(user_id=user_id, pk=id).delete()[0]:
        raise errors.NotFound(errors.RESOURCE_NOT_FOUND, str(id))
