"""Entities that a commit changes and their attributes, old and new, for the report of a dry run (spec 12, 12.1).

The report contains only what the caller may read: no entity that was or is hidden, not even if a rule changed it, and
no reference to one. An entity that the caller wrote and that row policies then hide is named without attributes.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.db import connection, transaction

from domain.database import postgresql
from domain.dataset.checks import access
from domain.dataset.checks.currencies_and_units import effective_measure
from domain.dataset.commit.history import without_secrets
from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.dry_run_hooks import ReportEntry
from domain.dataset.records.record import Record
from domain.dataset.tables.row_storage import row_storage_of
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model import custom_properties
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from foundation import dry_runs
from foundation.kinds import Kind
from foundation.texts import utc_text
from identity.context import AllPermissions, CallContext

ChangeOperation = Literal["create", "update", "delete"]
#: Longer texts are truncated to this.
MAX_CHARACTERS = 1_000
#: Set by the platform at each commit.
_MAINTAINED = frozenset({"ObjectVersion", "AggregateLastUpdateTimeUtc"})

_SHARED = "entity changes"


@dataclass(frozen=True, slots=True)
class ChangesHook:
    """The changes of one commit; a hook, so that those of a rolled back commit disappear with it."""

    changes: tuple[Mapping[str, Any], ...]

    def __call__(self) -> None:
        """Do nothing after a commit: the hook only carries the changes for the report."""

    def report_entries(self, context: CallContext) -> Iterator[ReportEntry]:
        """The collected changes. They are already limited to what the caller may read."""
        for change in self.changes:
            yield "changes", change


# --- stages of the commit -----------------------------------------------------------------------------------------


def note_before(dataset: ChangeTracker, result: CommitResult) -> None:
    """In a dry run, before rows are written: note the rows hidden from the caller, and former custom properties."""
    if dry_runs.current() is None:
        return
    for record in result.updated:
        if record.custom_changed:
            stored = row_storage_of(record.repository).load([record.id]).get(record.id)
            result.former_custom[record.key] = {} if stored is None else stored.custom
    if isinstance(dataset.context.permissions, AllPermissions):
        return
    for record in (*result.updated, *result.deleted):
        if not _stored_is_visible(record):
            result.hidden.add(record.key)


def note_changes(dataset: ChangeTracker, result: CommitResult) -> None:
    """In a dry run, after rows were written: collect the changes, and check what the database checks at its commit."""
    run = dry_runs.current()
    if run is None:
        return
    if result.inserted or result.updated or result.deleted:
        _check_deferred_constraints()
    written: tuple[tuple[ChangeOperation, list[Record]], ...] = (
        ("create", result.inserted), ("update", result.updated), ("delete", result.deleted),
    )  # fmt: skip
    changes = (
        change_of(record, operation, result.former_custom.get(record.key, {}))
        for operation, records in written
        for record in records
        if record.key not in result.hidden and (operation == "delete" or is_reported(record))
    )
    report_changes(changes, run)


def is_reported(record: Record) -> bool:
    """Whether the report may show the change of a stored row to the caller."""
    return record.by_client or _stored_is_visible(record)


def report_changes(changes: Iterable[Mapping[str, Any]], run: dry_runs.DryRun) -> None:
    """Register the changes for the dry run's report, up to its maximum number of entries."""
    room = run.shared.setdefault(_SHARED, dry_runs.MAX_ENTRIES)
    kept: list[Mapping[str, Any]] = []
    for change in changes:
        if len(kept) < room:
            kept.append(change)
        else:
            run.omitted["changes"] += 1
    run.shared[_SHARED] = room - len(kept)
    if kept:
        transaction.on_commit(ChangesHook(tuple(kept)))


def _stored_is_visible(record: Record) -> bool:
    context = record.dataset.context
    if isinstance(context.permissions, AllPermissions):
        return True
    return access.allowed(context, record.repository, "read") and access.row_visible(
        context, record.repository, record.id
    )


def _check_deferred_constraints() -> None:
    """Check references now, which PostgreSQL defers to the end of the transaction. SQLite has one writer: no other
    transaction can delete a target.
    """
    if connection.vendor == "postgresql":
        postgresql.execute(connection, "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")


# --- one entity ---------------------------------------------------------------------------------------------------


def change_of(
    record: Record, operation: ChangeOperation, former_custom: Mapping[str, Any], *, pending: bool = False
) -> dict[str, Any]:
    """{"set", "key", "operation", "attributes": {name: {"old", "new"}}}; a deleted entity has no attributes.

    pending   the row is not written yet
    """
    change: dict[str, Any] = {"set": record.repository.set_name, "key": record.id, "operation": operation}
    if operation == "delete":
        return change
    if pending or not record.by_client or _stored_is_visible(record):
        change["attributes"] = _attributes(record, former_custom)
    return change


def _attributes(record: Record, former_custom: Mapping[str, Any]) -> dict[str, Any]:
    attributes = record.repository.attributes
    is_new = record.state == "Added"
    result: dict[str, Any] = {}
    for name in record.values if is_new else record.original_values:
        attribute = attributes.get(name)
        if attribute is None or name in _MAINTAINED or name == "Id":
            continue
        new = shown_value(record, attribute, record.values[name])
        if not is_new:
            result[name] = {"old": shown_value(record, attribute, record.original_values[name]), "new": new}
        elif new is not None:
            result[name] = {"old": None, "new": new}
    if record.custom_changed:
        for code in sorted({*former_custom, *record.custom}):
            old, new = former_custom.get(code), record.custom.get(code)
            if old != new:
                name = custom_properties.PREFIX + custom_properties.escape_code(code)
                result[name] = {
                    "old": None if access.names_hidden(record, code, old) else old,
                    "new": None if access.names_hidden(record, code, new) else new,
                }
    return result


def shown_value(record: Record, attribute: Attribute, value: Any) -> Any:
    """A value as JSON can hold it: references as Set(guid), amounts and quantities with their measure, secrets masked.

    None for a reference to an entity that the caller may not see.
    """
    if value is None:
        return None
    value = without_secrets(record.repository, attribute, value)
    match attribute.kind:
        case Kind.REFERENCE:
            return _reference(record, attribute, value)
        case Kind.AMOUNT:
            return {"Value": value, "Currency": effective_measure(record, attribute)}
        case Kind.QUANTITY:
            return {"Value": value, "Unit": effective_measure(record, attribute)}
        case Kind.BINARY:
            return f"{len(value)} bytes"
    if isinstance(value, datetime.datetime):
        return utc_text(value)
    if isinstance(value, str) and len(value) > MAX_CHARACTERS:
        return value[:MAX_CHARACTERS] + "…"
    return value


def _reference(record: Record, attribute: Attribute, target_id: str) -> str | None:
    target = repositories[attribute.target]
    if not isinstance(record.dataset.context.permissions, AllPermissions):
        stored = record.dataset.load(target, target_id)
        if stored is not None and not access.record_visible(stored):
            return None
    return f"{target.set_name}({target_id})"
