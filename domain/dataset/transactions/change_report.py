"""The report of GetChanges on a pending entity (spec 03, 3.2): changes since its last report.

{"operation": "insert" | "update" | "delete", "values": {attribute: serialized value}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.dataset.records.record import Record
from domain.dataset.tables.models import PendingChange
from domain.model import custom_properties
from domain.model.values import serialize

Report = dict[str, Any]


def report(record: Record, before: PendingChange | None) -> Report | None:
    """The report for a changed record; None if it equals the last report again.

    before   its row as the last request stored it; None for an entity that this request was the first to change
    """
    if record.state == "Deleted":
        return {"operation": "delete", "values": {}}
    unreported: Report | None = before.reported if before is not None else None
    if before is None or (unreported is not None and unreported["operation"] == "insert"):
        return _whole(record)
    values = {**(unreported["values"] if unreported is not None else {}), **_since(record, before)}
    return {"operation": "update", "values": values} if values else None


def report_gone(before: PendingChange) -> Report | None:
    """The report for a new entity that was deleted again: its deletion, if its creation was reported."""
    is_secret = before.reported is not None and before.reported["operation"] == "insert"
    return None if is_secret else {"operation": "delete", "values": {}}


def _whole(record: Record) -> Report:
    attributes = record.repository.attributes
    if record.state == "Added":
        names = [name for name in record.values if name in attributes and record.values[name] is not None]
    else:
        names = [name for name in record.original_values if name in attributes]
    values = {name: serialize(attributes[name], record.values[name]) for name in names}
    custom = _custom(record, {}) if record.custom_changed or record.is_new else {}
    return {"operation": "insert" if record.state == "Added" else "update", "values": {**values, **custom}}


def _since(record: Record, before: PendingChange) -> dict[str, Any]:
    """Attributes whose value differs from before, including those that are back at their stored value."""
    attributes = record.repository.attributes
    known: Mapping[str, Any] = before.current
    now = record.values if record.state == "Added" else record.original_values
    result = {}
    for name in {**now, **known}:
        if name in attributes:
            value = serialize(attributes[name], record.values[name])
            if name not in known or name not in now or known[name] != value:
                result[name] = value
    return {**result, **(_custom(record, before.custom or {}) if record.custom_changed else {})}


def _custom(record: Record, known: Mapping[str, Any]) -> dict[str, Any]:
    """Custom properties by their API names; null for removed ones."""
    codes = [code for code in {**known, **record.custom} if known.get(code) != record.custom.get(code)]
    return {custom_properties.PREFIX + custom_properties.escape_code(code): record.custom.get(code) for code in codes}
