"""Default values and required values of custom properties (spec 10, 10.2)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from domain.dataset.lookups.allowed_values import find_allowed
from domain.dataset.records.record import Record
from domain.model.custom_properties import Definition, definitions
from domain.model.custom_values import stored_form
from domain.model.values import is_blank
from foundation.enums import DOCUMENT_STATE


def fill_custom_defaults(record: Record) -> None:
    """Set the default values of a new entity's custom properties, except defaults that are no longer allowed."""
    for known in definitions(record.repository.name).values():
        if not known.default:
            continue
        find = partial(find_allowed, record.dataset, visible=lambda found: True)
        if known.allowed_from and find(known, known.default, None) is None:
            continue
        if not known.allowed_from and known.limited and known.default not in known.allowed:
            continue
        stored = stored_form(known, known.default, record.dataset.context.language, find)
        if stored is not None:
            record.custom = {**record.custom, known.code: stored}


def missing_custom(record: Record) -> Iterator[Definition]:
    """Required custom properties without a value.

    For an entity from before the property was required, this checks only edits of callers and changes of its state, not
    values that the platform calculates.
    """
    known = definitions(record.repository.name)
    if not known or not (
        record.is_new or record.by_client or record.custom_changed or "State" in record.original_values
    ):
        return
    if record.values.get("Void"):
        return
    for definition in known.values():
        if definition.required and _is_missing(record, definition) and _reached(record, definition.required_from):
            yield definition


def _is_missing(record: Record, definition: Definition) -> bool:
    stored = record.custom.get(definition.code)
    return stored is None or is_blank(stored["Value"])


def _reached(record: Record, state: str) -> bool:
    """Whether a document's state is the given one or a later one; true for every entity if no state is given."""
    members = DOCUMENT_STATE.members
    return not state or members.get(str(record.values.get("State")), 0) >= members[state]
