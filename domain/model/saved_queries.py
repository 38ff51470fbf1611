"""The table of saved queries of the query tool."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from foundation.fields import guid_primary_key

#: Bounds of a name, of an address, and of a column's name in a chart.
NAME_CHARACTERS, PATH_CHARACTERS, COLUMN_CHARACTERS = 80, 4000, 200


class SavedQuery(models.Model):
    """A GET request that a user saved under a name.

    path        path and query below the service root, as typed
    is_shared   other internal users see the query too; it runs with the rights of who runs it
    chart       how its rows are drawn (domain.api_site.query_charts.ChartChoice); None: not at all
    on_home_of  users whose home page has a tile of the query: its owner and, while it is shared, others
    """

    id = guid_primary_key()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=NAME_CHARACTERS)
    path = models.CharField(max_length=PATH_CHARACTERS)
    is_shared = models.BooleanField(default=False)
    chart = models.JSONField(null=True)
    on_home_of = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")

    objects: ClassVar[models.Manager[SavedQuery]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_query_name")]
        indexes = [models.Index(fields=["is_shared", "name"], name="saved_query_shared")]
