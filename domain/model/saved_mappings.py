"""The table of saved mappings of spreadsheets."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from foundation.fields import guid_primary_key

NAME_CHARACTERS = 80


class SavedMapping(models.Model):
    """A mapping of sheets and columns that a user saved under a name (domain.odata.sheets.mapping).

    is_shared   other internal users may use it, too
    """

    id = guid_primary_key()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=NAME_CHARACTERS)
    mapping = models.JSONField()
    is_shared = models.BooleanField(default=False)

    objects: ClassVar[models.Manager[SavedMapping]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="saved_mapping_name")]
        indexes = [models.Index(fields=["is_shared", "name"], name="saved_mapping_shared")]
