"""The table of saved views of lists."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from foundation.fields import guid_primary_key

#: Bounds of a name and of a query string.
NAME_CHARACTERS, QUERY_CHARACTERS = 80, 2000


class SavedView(models.Model):
    """Columns, filters, order and search of a list, saved by a user under a name.

    repository   dotted name of the list's repository
    query        the list's query string, with names of columns (domain.admin.saved_views)
    is_shared    everyone who may open the list may open the view
    is_default   the user's list without a query string is this view
    """

    id = guid_primary_key()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    repository = models.CharField(max_length=128)
    name = models.CharField(max_length=NAME_CHARACTERS)
    query = models.CharField(max_length=QUERY_CHARACTERS, blank=True)
    is_shared = models.BooleanField(default=False)
    is_default = models.BooleanField(default=False)

    objects: ClassVar[models.Manager[SavedView]]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "repository", "name"], name="saved_view_name"),
            models.UniqueConstraint(
                fields=["user", "repository"], condition=models.Q(is_default=True), name="saved_view_default"
            ),
        ]
        indexes = [models.Index(fields=["repository", "is_shared"], name="saved_view_repository")]
