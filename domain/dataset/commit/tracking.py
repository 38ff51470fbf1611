"""The tracking level of each repository's history (spec 12, 12.2), and since when it applies.

An entity has the level of its aggregate's root. Without a setting, configuration and documents have level 3 and others
level 1. Repositories that the dataset does not write, such as views and the history itself, have none.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Min

from domain.dataset.tables.history import (
    ATTRIBUTES,
    DEFAULTS,
    LAST_CHANGE,
    NOTHING,
    TRACKING_LEVEL,
    ObjectChangeset,
    RepositoryTracking,
)
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import utc_now
from foundation.versioned_cache import VersionedCache
from identity.context import AsOf

CACHE_VERSION = "tracking"


@dataclass(frozen=True, slots=True)
class Tracking:
    """The tracking of a repository's entities.

    level           0 nothing, 1 last change, 2 change sets, 3 attributes, 4 also blobs
    since           from when on all changes of attributes are known; None below level 3
    retention_days  how long changes are kept
    """

    level: int
    since: datetime.datetime | None
    retention_days: int

    def known_since(self, now: datetime.datetime) -> datetime.datetime | None:
        """The time since which changes are certain to be kept, since older ones may be deleted at any time; or None."""
        if self.since is None or not self.retention_days:
            return self.since
        return max(self.since, now - datetime.timedelta(days=self.retention_days))


def default_level(repository: Repository[Any]) -> int:
    """The level of a root repository without a setting."""
    if repository.view_of or repository.access == "ReadOnly":
        return NOTHING
    is_configuration = repository.category == "Settings" or repository.authored or repository.decides_access
    return ATTRIBUTES if is_configuration or repository.is_document else LAST_CHANGE


def root_of(repository: Repository[Any]) -> Repository[Any]:
    """The repository of the roots of the aggregates that its entities belong to."""
    current, seen = repository, set[str]()
    while current.owner is not None and current.name not in seen:
        seen.add(current.name)
        current = repositories[current.owner.target]
    return current


def _load() -> Mapping[str, Tracking]:
    rows = {row.repository_name: row for row in RepositoryTracking.objects.all()}
    everywhere = rows.get(DEFAULTS)
    began, others_began = (
        (None, None) if everywhere is None else (everywhere.tracked_since, everywhere.others_tracked_since)
    )
    if began is None:
        # The settings row was deleted: the history begins with the oldest change set that is left.
        began = ObjectChangeset.objects.aggregate(oldest=Min("change_time_utc"))["oldest"] or utc_now()
    days = settings.HISTORY_DAYS
    if everywhere is not None and everywhere.retention_days is not None:
        days = everywhere.retention_days
    result: dict[str, Tracking] = {}
    for repository in repositories:
        root = root_of(repository)
        own = rows.get(root.name)
        level = default_level(root)
        if level != NOTHING and everywhere is not None and everywhere.tracking_level is not None:
            level = TRACKING_LEVEL.members[everywhere.tracking_level]
        if own is not None and own.tracking_level is not None:
            level = TRACKING_LEVEL.members[own.tracking_level]
        since = began if default_level(root) >= ATTRIBUTES else others_began or began
        if own is not None and own.tracked_since is not None:
            # With the level of all it lost changes when all did.
            since = own.tracked_since if own.tracking_level is not None else max(own.tracked_since, since)
        kept = days if own is None or own.retention_days is None else own.retention_days
        result[repository.name] = Tracking(level, since if level >= ATTRIBUTES else None, kept)
    return result


_known: VersionedCache[Mapping[str, Tracking]] = VersionedCache(
    _load, CACHE_VERSION, state=lambda: repositories.generation
)


def tracking() -> Mapping[str, Tracking]:
    """Name of each repository → its tracking."""
    return _known.get()


def tracking_of(repository: Repository[Any]) -> Tracking:
    """The tracking of the repository's entities."""
    return tracking()[repository.name]


def as_of(moment: datetime.datetime, *, now: datetime.datetime | None = None) -> AsOf:
    """The time for reads, with the repositories whose history does not reach back to it (now: utc_now)."""
    now = now or utc_now()
    unknown: dict[str, datetime.datetime | None] = {}
    for name, kept in tracking().items():
        since = kept.known_since(now)
        if since is None or since > moment:
            unknown[name] = since
    return AsOf(moment, unknown, tuple(sorted(unknown)))
