"""Snapshots of a dataset: restored by a failed commit; also the state after a successful one."""

from __future__ import annotations

import datetime
from typing import Any

from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.record import Record, State
from domain.dataset.unit.change_tracker import ChangeTracker

#: identity → a changed record and its state, values, original values, custom properties, custom_changed
Snapshot = dict[tuple[str, str], tuple[Record, State, dict[str, Any], dict[str, Any], dict[str, Any], bool]]


def take_snapshot(dataset: ChangeTracker) -> Snapshot:
    """The state of the changed records, for `restore`."""
    return {
        key: (
            record,
            record.state,
            dict(record.values),
            dict(record.original_values),
            record.custom,
            record.custom_changed,
        )
        for key, record in dataset.records.items()
        if record.state != "Unchanged"
    }


def restore(dataset: ChangeTracker, before: Snapshot) -> None:
    """Undo a failed commit's changes of records: a Domain transaction keeps exactly its pending changes."""
    for key, record in list(dataset.records.items()):
        if key in before:
            continue
        if record.state == "Added":
            del dataset.records[key]
            dataset.child_collections.forget(key)
        elif record.state != "Unchanged":
            record.values.update(record.original_values)
            record.original_values = {}
            record.state = "Unchanged"
            if record.custom_changed:
                record.custom, record.custom_changed = record.original_custom, False
    removed = [record for key, (record, *_) in before.items() if key not in dataset.records]
    dataset.records.update((record.key, record) for record in removed)
    for record, state, values, originals, custom, custom_changed in before.values():
        record.state, record.values, record.original_values = state, values, originals
        record.custom, record.custom_changed = custom, custom_changed
        if dataset.model != "frontend":
            record.dirty.update(originals if state == "Modified" else values)
    for record in removed:
        dataset.child_collections.attach(record)


def accept_changes(dataset: ChangeTracker, result: CommitResult, commit_time: datetime.datetime) -> None:
    """After a commit: mark every record as loaded, unchanged and at its new version."""
    for record in (*result.updated, *result.touched):
        record.values["ObjectVersion"] = record.version + 1
        if record.repository.is_root:
            record.values["AggregateLastUpdateTimeUtc"] = commit_time
    for record in result.deleted:
        dataset.forget(record.key)
    dataset.lookups.pending.clear()
    dataset.authorities.clear()
    dataset.rules_behind.clear()
    for record in dataset.records.values():
        record.state = "Unchanged"
        record.original_values = {}
        record.custom_changed = False
        record.by_client = record.client_caused = False
        record.dirty = set()
        record.version = record.values.get("ObjectVersion") or 1
