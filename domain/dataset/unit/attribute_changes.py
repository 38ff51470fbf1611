"""Changes attributes and custom properties of records, with the events that these changes raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from domain.dataset.checks.authority import check_authority
from domain.dataset.lookups.name_binding import custom_event_values
from domain.dataset.records.record import Record, UnitOfWork
from domain.dataset.unit.child_collections import ChildCollections
from domain.dataset.unit.events import Events
from domain.model.attributes import Attribute
from domain.model.values import round_to_scale
from foundation import errors

_ATTRIBUTE_EVENTS = ("ATTRIBUTECHANGING", "ATTRIBUTECHANGED")


class ChangedUnit(UnitOfWork, Protocol):
    """The dataset's interface for attribute changes."""

    child_collections: ChildCollections

    def note_change(self, record: Record) -> None:
        """Count a change of the record."""
        ...


class AttributeChanges:
    """Changes the attributes of a dataset's records."""

    def __init__(self, dataset: ChangedUnit, events: Events) -> None:
        self._dataset = dataset
        self.events = events

    @staticmethod
    def is_current(record: Record, member: Attribute, value: Any) -> bool:
        """Whether the attribute has the value already, so that `change` does nothing."""
        old, value = record.values.get(member.name), _canonical(member, value)
        return bool(old == value) and type(old) is type(value)

    def change(self, record: Record, member: Attribute, value: Any, *, raises: bool) -> None:
        """Set the attribute and raise its events (`raises`): an error prevents or undoes the change."""
        value = _canonical(member, value)
        old = record.values.get(member.name)
        if old == value and type(old) is type(value):
            return
        self._check_change(record, member.name)
        if raises and self.events.watches(record, _ATTRIBUTE_EVENTS, member.name):
            values = {"$OldValue": old, "$NewValue": value}
            self._apply_with_events(record, member.name, values, partial(self._apply, record, member), old, value)
        else:
            self._apply(record, member, value)

    def _check_change(self, record: Record, parameter: str) -> None:
        self._dataset.about_to_change(record)
        if record.state == "Deleted":
            raise errors.NotFound(errors.ENTITY_NOT_FOUND, record.repository.entity_type, record.id)
        check_authority(record, "update", parameter)

    def _apply_with_events(
        self,
        record: Record,
        parameter: str,
        values: Mapping[str, Any],
        apply: Callable[[Any], None],
        old: Any,
        value: Any,
    ) -> None:
        """Apply the value between the attribute's events. An error of the first prevents, of the second undoes it."""
        self.events.raise_event(record, "ATTRIBUTECHANGING", parameter, values)
        custom, before = record.custom, (record.state, record.custom_changed)
        apply(value)
        try:
            self.events.raise_event(record, "ATTRIBUTECHANGED", parameter, values)
        except errors.PlatformError:
            # The caller may catch the error and continue. Other changes of the rule remain, but in a call of a script.
            apply(old)
            if not (record.is_deleted or record.original_values) and record.custom == custom:
                record.state, record.custom_changed = before
            raise

    def _apply(self, record: Record, member: Attribute, value: Any) -> None:
        old = record.values.get(member.name)
        if record.state == "Unchanged":
            record.state = "Modified"
        if record.state == "Modified":
            if member.name not in record.original_values:
                record.original_values[member.name] = old
            elif record.original_values[member.name] == value:
                del record.original_values[member.name]
        record.values[member.name] = value
        record.dirty.add(member.name)
        self._dataset.note_change(record)
        if member.is_reference:
            self._dataset.child_collections.attach_by(record, member)
            if member.owner:
                self._dataset.child_collections.mark_parent(record, old)
                self._dataset.child_collections.mark_parent(record, value)
        if self._dataset.model == "frontend":
            self._dataset.calculate([record])

    def change_custom(self, record: Record, code: str, value: Mapping[str, Any] | None, *, raises: bool) -> None:
        """As `change`; the parameter of the events is `@code`."""
        old = record.custom.get(code)
        if old == value:
            return
        parameter = f"@{code}"
        self._check_change(record, parameter)
        if raises and self.events.watches(record, _ATTRIBUTE_EVENTS, parameter):
            values = custom_event_values(record.repository, code, old, value)
            self._apply_with_events(record, parameter, values, partial(self._apply_custom, record, code), old, value)
        else:
            self._apply_custom(record, code, value)

    def _apply_custom(self, record: Record, code: str, value: Mapping[str, Any] | None) -> None:
        if not record.custom_changed:
            record.original_custom = record.custom
        record.custom = {**record.custom}
        if value is None:
            record.custom.pop(code, None)
        else:
            record.custom[code] = dict(value)
        record.custom_changed = True
        if record.state == "Unchanged":
            record.state = "Modified"
        self._dataset.note_change(record)


def _canonical(member: Attribute, value: Any) -> Any:
    """The value as it is kept: the key of a record, a number with the attribute's decimal places."""
    if isinstance(value, Record):
        return value.id
    return value if value is None or member.quantum is None else round_to_scale(member, value)
