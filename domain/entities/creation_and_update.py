"""Audit attributes: time and user of creation and last change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import fill, user_login
from foundation.models import SharedAttributes

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: Read-only for callers.
TRACKED_ATTRIBUTES = frozenset({"creation_time", "creation_user", "update_time", "update_user"})


class Tracked(SharedAttributes):
    """Attributes for time and user of creation and last change."""

    creation_time = models.DateTimeField(null=True, blank=True)
    creation_user = models.CharField(max_length=64, null=True, blank=True)
    update_time = models.DateTimeField(null=True, blank=True)
    update_user = models.CharField(max_length=64, null=True, blank=True)

    class Meta:
        abstract = True


def track_creation_and_update(record: Record) -> None:
    """Late default of CreationTime, CreationUser, UpdateTime and UpdateUser."""
    dataset = record.dataset
    if record.is_new:
        fill(record, "creation_time", dataset.now())
        fill(record, "creation_user", user_login(dataset))
    elif record.original_values and not record.original_values.keys() <= {"UpdateTime", "UpdateUser"}:
        record.update_time = dataset.now()
        record.update_user = user_login(dataset)
