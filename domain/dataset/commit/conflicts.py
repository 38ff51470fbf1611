"""Detects conflicts with other requests: compares lookups and versions from before the commit with the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

from domain.dataset.commit.retries import ConcurrentUpdate
from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.record import Record, with_roots
from domain.dataset.tables.row_storage import row_storage_of
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors


def repeat_lookups(dataset: ChangeTracker, result: CommitResult) -> None:
    """Repeat the lookups whose empty results made the Domain transaction create entities; they must still be empty.

    The first stage: a plain request takes its advisory locks before any row lock, and the lock order must be the same.
    """
    made = [
        (dataset.records[key], lookup)
        for key, lookup in dataset.lookups.pending.items()
        if key in dataset.records and lookup.fits(dataset.records[key])
    ]
    if not made:
        return
    values: dict[Repository[Any], list[str]] = {}
    for _, lookup in made:
        values.setdefault(lookup.repository, []).extend(lookup.locks())
    locks = AdvisoryLocks()
    for repository in sorted(values, key=lambda repository: repository.identity_name):
        locks.take(repository, values[repository])
    known = sum(record.state in ("Modified", "Deleted") for record in dataset.changed())
    for record, lookup in made:
        for id in lookup.stored(dataset.context, limit=1 + known):
            other = dataset.records.get((record.repository.identity_name, id))
            # Entities that this commit deletes or changes no longer match; its new entities are pending.
            if other is None or other.state == "Unchanged":
                raise errors.VersionConflict(errors.MADE_MEANWHILE, record.repository.entity_type, lookup.describe())


def check_versions(dataset: ChangeTracker, result: CommitResult) -> None:
    """Check the versions of entities that a Domain transaction changed, and of those to be deleted (spec 03, 3.1).

    Raises VersionConflict for an entity that another commit has written since it was loaded.

    It runs before validations, which would blame the caller for another request's changes. Updates of a plain request
    are checked by the statement that writes them.

    On PostgreSQL roots are locked here, too, each before its parts and all in one order, so that two requests that
    write some of the same entities cannot deadlock.
    """
    changed = dataset.changed()
    stored_before = {
        record.key: record
        for record in changed
        if record.is_deleted or (record.state == "Modified" and dataset.pending_source is not None)
    }
    if connection.features.has_select_for_update:
        stored_before.update(_roots_to_lock(changed))
    check_stored_versions(dataset, stored_before.values())


def check_stored_versions(dataset: ChangeTracker, expected: Iterable[Record]) -> None:
    """Lock the records' rows, parents first. Raises VersionConflict for one written since it was loaded."""
    by_identity: dict[tuple[int, str], list[Record]] = {}
    for record in expected:
        by_identity.setdefault((depth(record), record.repository.identity_name), []).append(record)
    for (_, identity), records in sorted(by_identity.items(), key=lambda group: group[0]):
        versions = row_storage_of(repositories[identity]).lock_versions([record.id for record in records])
        for record in records:
            if versions.get(record.id) != record.version:
                raise conflict(dataset, record, versions.get(record.id))


def _roots_to_lock(changed: Sequence[Record]) -> dict[tuple[str, str], Record]:
    """Stored roots to lock; none for a single row, which its own statement locks."""
    roots = stored_roots(changed)
    alone = len(roots) <= 1 and all(record.state == "Added" or record.key in roots for record in changed)
    return {} if alone else roots


def stored_roots(changed: Sequence[Record]) -> dict[tuple[str, str], Record]:
    """Stored roots of changed entities and parts, by identity."""
    return {root.key: root for _, roots in with_roots(changed) for root in roots if root.state != "Added"}


def conflict(dataset: ChangeTracker, record: Record, stored: int | None) -> errors.VersionConflict:
    """The error for a changed version or a deleted row."""
    path = f"{record.repository.set_name}({record.id})"
    code, values = errors.DELETED_MEANWHILE, [path]
    if stored is not None:
        code, values = errors.VERSION_CONFLICT, [path, str(record.version), str(stored)]
    if dataset.pending_source is not None and dataset.pending_source.has(record):
        return errors.VersionConflict(code, *values)
    return ConcurrentUpdate(code, *values, record=record)


def depth(record: Record) -> int:
    """0 for roots, 1 for their children …"""
    level = 0
    repository = record.repository
    while repository.owner is not None:
        level += 1
        repository = repositories[repository.owner.target]
    return level
