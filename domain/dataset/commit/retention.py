"""Deletes changes past their retention (spec 12, 12.2): HISTORY_DAYS, or the days of a repository's setting."""

from __future__ import annotations

import datetime
from collections import defaultdict

from django.db import transaction
from django.db.models import Count, Exists, OuterRef

from audit.actors import PLATFORM
from audit.hashing import moment
from audit.record import record
from domain.dataset.commit.history_chain import HistoryPruned
from domain.dataset.commit.tracking import CACHE_VERSION, root_of, tracking
from domain.dataset.tables.history import DEFAULTS, ObjectChange, ObjectChangeset, RepositoryTracking
from domain.model.registry import repositories
from foundation import cache_versions
from foundation.fields import utc_now

#: Rows that one statement deletes: on SQLite each blocks the other writers for some milliseconds.
_ROWS_AT_ONCE = 1_000


def history_prune() -> int:
    """Delete changes of objects past their retention, then change sets without any; returns the number of changes.

    Queries as of a time can then go back to the limit only. The limit is stored before anything is deleted.
    """
    now = utc_now()
    limits: dict[datetime.datetime, list[str]] = defaultdict(list)
    for name, kept in tracking().items():
        if kept.retention_days:
            limits[now - datetime.timedelta(days=kept.retention_days)].append(name)
    if not limits:
        return 0
    deleted = 0
    for limit, names in limits.items():
        # By the index of change sets; each change has the time of its set.
        before = ObjectChangeset.objects.filter(aggregate_last_update_time_utc__lt=limit)
        old = ObjectChange.objects.filter(repository_name__in=names, changeset__in=before.values("pk"))
        counts = dict(old.order_by().values_list("repository_name").annotate(Count("pk")))
        if not counts:
            continue
        with transaction.atomic():
            _note(limit, names)
            record(HistoryPruned, by=PLATFORM, before=moment(limit), changes=counts)
        old = old.filter(repository_name__in=counts)
        while ids := list(old.values_list("id", flat=True)[:_ROWS_AT_ONCE]):
            deleted += ObjectChange.objects.filter(id__in=ids)._raw_delete("default")
    empty = ObjectChangeset.objects.filter(
        ~Exists(ObjectChange.objects.filter(changeset=OuterRef("pk"))),
        aggregate_last_update_time_utc__lt=max(limits),
    )
    while ids := list(empty.values_list("id", flat=True)[:_ROWS_AT_ONCE]):
        ObjectChangeset.objects.filter(id__in=ids)._raw_delete("default")
    return deleted


def _note(limit: datetime.datetime, names: list[str]) -> None:
    """Set `tracked_since` to the limit, in the settings that apply to these repositories."""
    own = set(RepositoryTracking.objects.filter(repository_name__in=names).values_list("repository_name", flat=True))
    concerned = [*own, DEFAULTS] if any(root_of(repositories[name]).name not in own for name in names) else [*own]
    settings = RepositoryTracking.objects.filter(repository_name__in=concerned)
    moved = [
        settings.filter(**{f"{name}__lt": limit}).update(**{name: limit})
        for name in ("tracked_since", "others_tracked_since")
    ]
    if any(moved):
        cache_versions.bump(CACHE_VERSION)
