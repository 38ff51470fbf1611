"""What GetChanges has still to tell of a pending entity (spec 03, 3.2): what changed since it was last told.

{"operation": "insert" | "update" | "delete", "values": {attribute: frozen value}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.dataset.records.record import Record
from domain.dataset.tables.models import PendingChange
from domain.model import custom_properties
from domain.model.values import freeze

Report = dict[str, Any]


def report(record: Record, before: PendingChange | None) -> Report | None:
    """What there is to tell now that the record has changed; None where it is again as it was told.

    before   its row as the last request left it; None for an entity that this request was the first to change
    """
    if record.state == "Deleted":
        return {"operation": "delete", "values": {}}
    untold: Report | None = before.reported if before is not None else None
    if before is None or (untold is not None and untold["operation"] == "insert"):
        return _whole(record)
    values = {**(untold["values"] if untold is not None else {}), **_since(record, before)}
    return {"operation": "update", "values": values} if values else None


def report_gone(before: PendingChange) -> Report | None:
    """What there is to tell of a new entity that is no more: its end, to those who were told of its beginning."""
    is_secret = before.reported is not None and before.reported["operation"] == "insert"
    return None if is_secret else {"operation": "delete", "values": {}}


def _whole(record: Record) -> Report:
    attributes = record.repository.attributes
    if record.state == "Added":
        names = [name for name in record.values if name in attributes and record.values[name] is not None]
    else:
        names = [name for name in record.original_values if name in attributes]
    values = {name: freeze(attributes[name], record.values[name]) for name in names}
    custom = _custom(record, {}) if record.custom_changed else {}
    return {"operation": "insert" if record.state == "Added" else "update", "values": {**values, **custom}}


def _since(record: Record, before: PendingChange) -> dict[str, Any]:
    """Attributes whose value is not the one of before. One that has its stored value again is among them, too."""
    attributes = record.repository.attributes
    known: Mapping[str, Any] = before.current
    now = record.values if record.state == "Added" else record.original_values
    found = {}
    for name in {**now, **known}:
        if name in attributes:
            value = freeze(attributes[name], record.values[name])
            if name not in known or name not in now or known[name] != value:
                found[name] = value
    return {**found, **(_custom(record, before.custom or {}) if record.custom_changed else {})}


def _custom(record: Record, known: Mapping[str, Any]) -> dict[str, Any]:
    """Custom properties by their API names; null for those that have gone."""
    codes = [code for code in {**known, **record.custom} if known.get(code) != record.custom.get(code)]
    return {custom_properties.PREFIX + custom_properties.escape_code(code): record.custom.get(code) for code in codes}
