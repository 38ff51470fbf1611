"""Names that rules, templates and display formats use, bound to readers of records (spec 05, 5.2 and 5.4).

    Attribute  Ref.Path.Attribute     members of the entity and of what its references lead to
    @code  Ref.Path.@code             a custom property, by code
    $NewValue                         an attribute of the event

Binding happens once, against the registry: an unknown name is found when a rule is saved, not when its event comes.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext_noop as _

from domain.dataset.records.record import Record
from domain.model import custom_properties
from domain.model.attributes import Attribute
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import DISPLAY_TEXT, Repository
from foundation import errors
from foundation.enums import EnumType
from foundation.kinds import Kind

#: Event attribute (with `$`) → canonical value.
EventValues = Mapping[str, Any]


class UnknownName(ValueError):
    """The name means nothing here; the text says so in the active language, with names that are near."""

    def __init__(self, message_format: str, *parameters: str) -> None:
        super().__init__(errors.format_message(message_format, parameters))


@dataclass(frozen=True, slots=True)
class EventName:
    """An event attribute as it is known for one event of a rule."""

    name: str
    kind: Kind
    enum: EnumType | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A name that is known to mean something.

    text        as written
    kind        of its value; enum, target: of ENUM and STATE, of REFERENCE
    attribute   what it ends in; None for custom properties and event attributes
    hops        references to follow before `attribute`
    read        (record, event values) → canonical value; None where a reference on the way is null
    """

    text: str
    kind: Kind
    read: Callable[[Record, EventValues], Any]
    enum: EnumType | None = None
    target: str = ""
    attribute: Attribute | None = None
    hops: tuple[Attribute, ...] = ()

    def holder(self, record: Record) -> Record | None:
        """The entity that the last part of the path belongs to."""
        return follow(record, self.hops)


def follow(record: Record, hops: Iterable[Attribute]) -> Record | None:
    """What the references lead to, one after another; None where one is null."""
    current: Record | None = record
    for hop in hops:
        if current is None:
            return None
        target = current.values.get(hop.name)
        current = None if target is None else current.dataset.load(hop.target, target)
    return current


def member_value(record: Record, attribute: Attribute) -> Any:
    """The canonical value of a member, calculated ones included."""
    if attribute.key_alias:
        return record.id
    if attribute.name == DISPLAY_TEXT:
        return record.describe()
    return record.values.get(attribute.name)


def _member_reader(attribute: Attribute) -> Callable[[Record, EventValues], Any]:
    """What gives `member_value` of the attribute, and asks it only once of which sort it is."""
    if attribute.key_alias or attribute.name == DISPLAY_TEXT:
        return lambda record, events: member_value(record, attribute)
    name = attribute.name
    return lambda record, events: record.values.get(name)


def bind(repository: Repository[Any], text: str, events: Iterable[EventName] = ()) -> Name:
    """The meaning of a name on entities of the repository. Raises UnknownName."""
    written = text.strip()
    if written.startswith("@"):
        return _bind_custom(repository, written)
    if written.startswith("$"):
        return _bind_event(written, events)
    path, found, code = written.partition(".@")
    if found:
        return _bind_custom_of(repository, path, f"@{code}")
    return bind_path(repository, written.split("."))


def bind_path(repository: Repository[Any], path: Iterable[str]) -> Name:
    """A path over references to a member. Raises UnknownName."""
    names = list(path)
    hops: list[Attribute] = []
    current = repository
    for name in names[:-1]:
        attribute = _member(current, name)
        if not attribute.is_reference:
            raise UnknownName(
                _("{0}.{1} is not a reference, so no path leads through it"), current.name, attribute.name
            )
        hops.append(attribute)
        current = repositories[attribute.target]
    attribute = _member(current, names[-1])
    route = tuple(hops)
    member = _member_reader(attribute)

    def over_the_route(record: Record, events: EventValues) -> Any:
        holder = follow(record, route)
        return None if holder is None else member(holder, events)

    read = over_the_route if route else member
    return Name(".".join(names), attribute.kind, read, attribute.enum, attribute.target, attribute, route)


def _member(repository: Repository[Any], name: str) -> Attribute:
    attribute = repository.attribute(name)
    if attribute is None:
        raise UnknownName(_("{0} has no attribute '{1}'.{2}"), repository.name, name, near(name, repository.attributes))
    return attribute


def _bind_custom(repository: Repository[Any], text: str) -> Name:
    code = text[1:]
    definition = custom_properties.by_code(repository, code)
    if definition is None:
        known = [entry.code for entry in custom_properties.definitions(repository.name).values()]
        raise UnknownName(_("{0} has no custom property '{1}'.{2}"), repository.name, code, near(code, known))
    kind = definition.kind

    def read(record: Record, events: EventValues) -> Any:
        stored = record.custom.get(code)
        return None if stored is None else custom_value(kind, stored.get("Value"))

    return Name(text, kind, read)


def _bind_custom_of(repository: Repository[Any], path: str, code: str) -> Name:
    """The custom property of what a path of references leads to. Raises UnknownName."""
    way = bind_path(repository, path.split("."))
    if way.attribute is None or not way.attribute.is_reference:
        raise UnknownName(_("{0}.{1} is not a reference, so no path leads through it"), repository.name, path)
    hops = (*way.hops, way.attribute)
    custom = _bind_custom(repositories[way.target], code)

    def read(record: Record, events: EventValues) -> Any:
        holder = follow(record, hops)
        return None if holder is None else custom.read(holder, events)

    return Name(f"{path}.{code}", custom.kind, read, hops=hops)


def custom_value(kind: Kind, text: Any) -> Any:
    """The canonical value of a custom property's stored text."""
    if text is None:
        return None
    match kind:
        case Kind.DECIMAL:
            return Decimal(str(text))
        case Kind.DATE:
            return datetime.date.fromisoformat(str(text)[:10])
        case _:
            return str(text)


def custom_event_values(
    repository: Repository[Any], code: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> EventValues:
    """$OldValue and $NewValue of a custom property that changes from one stored form to the other."""
    definition = custom_properties.by_code(repository, code)
    kind = Kind.STRING if definition is None else definition.kind
    told = {"$OldValue": old, "$NewValue": new}
    return {name: None if stored is None else custom_value(kind, stored.get("Value")) for name, stored in told.items()}


def _bind_event(text: str, events: Iterable[EventName]) -> Name:
    known = {event.name.lower(): event for event in events}
    found = known.get(text.lower())
    if found is None:
        hint = near(text, [event.name for event in known.values()])
        raise UnknownName(_("The event has no attribute '{0}'.{1}"), text, hint)
    name = found.name

    def read(record: Record, events: EventValues) -> Any:
        return events.get(name)

    return Name(name, found.kind, read, found.enum, found.target)
