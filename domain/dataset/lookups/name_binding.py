"""Binds names in rules, templates and display formats to readers of records (spec 05, 5.2 and 5.4).

    Attribute  Ref.ReferencePath.Attribute     members of the entity and of referenced entities
    QuantityValue  SalesPersonId               the number of a measured attribute, the guid of a reference
    ObjectState                       the pending change of the entity, or after a commit the committed one
    @code  Ref.ReferencePath.@code             a custom property, by code
    #Name  Ref.ReferencePath.#Name    a calculated attribute; without # where nothing else has the name
    $NewValue                         an attribute of the event

`bind_from` binds paths that begin elsewhere: at the caller's role, at an entity by its key.

Names are bound once, against the registry: an unknown name is reported when a rule is saved, not when its event occurs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext_noop as _

from domain.dataset.lookups.calculated_values import calculated_value, kind_of, paths_read, type_of_calculated
from domain.dataset.records.record import Record
from domain.model import calculated_attributes, custom_properties, template_syntax
from domain.model.attributes import Attribute
from domain.model.calculated_attributes import Definition
from domain.model.custom_values import canonical
from domain.model.formats.specifiers import SHOW_MEASURE
from domain.model.members import DISPLAY_TEXT
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.template_syntax import Placeholder
from foundation import errors
from foundation.enums import OBJECT_STATE, EnumType
from foundation.kinds import Kind

#: Event attribute (with `$`) → canonical value.
EventValues = Mapping[str, Any]


#: Maximum depth of display formats that show references to entities with such formats; ends cycles.
MAX_DISPLAY_DEPTH = 5
_GONE = _("There is no {0}")
#: Name of a hop to the rows of a list, of which only the repository is known.
ROWS = "#rows"


class UnknownName(ValueError):
    """An unknown name; the message is in the active language and suggests similar names."""

    def __init__(self, message_format: str, *parameters: str) -> None:
        super().__init__(errors.format_message(message_format, parameters))


@dataclass(frozen=True, slots=True)
class EventName:
    """An event attribute of one event of a rule."""

    name: str
    kind: Kind
    enum: EnumType | None = None
    target: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """The start of a path that does not start at the entity.

    name    as written: $role, General_Products_Products(0189…)
    target  repository
    find    (record) → guid in the target; None for none
    must_exist  the author wrote the guid, so a missing entity is an error and not null
    """

    name: str
    target: str
    find: Callable[[Record], str | None]
    must_exist: bool = False


#: A sequence of references; the first may be an event attribute or an origin.
ReferencePath = tuple[Attribute | EventName | Origin, ...]


@dataclass(frozen=True, slots=True)
class Name:
    """A bound name.

    text        as written
    kind        of its value; enum, target: of ENUM and STATE, of REFERENCE
    attribute   the last attribute; None for custom properties and event attributes
    hops        references to follow before `attribute`
    repository  of `attribute`
    read        (record, event values) → canonical value; None if a reference on the path is null
    custom      code of a custom property; "" for others
    origin      the origin itself, for a name without a path behind it
    calculated  API name of a calculated attribute; "" for others
    named       of a custom property whose values are entities: the entity, behind `hops`
    """

    text: str
    kind: Kind
    read: Callable[[Record, EventValues], Any]
    enum: EnumType | None = None
    target: str = ""
    attribute: Attribute | None = None
    hops: ReferencePath = ()
    repository: str = ""
    custom: str = ""
    origin: Origin | None = None
    calculated: str = ""
    named: Origin | None = None

    @property
    def way(self) -> ReferencePath:
        """The references whose targets must be visible for the value to be."""
        return self.hops if self.named is None else (*self.hops, self.named)

    def holder(self, record: Record) -> Record | None:
        """The entity at the last part of the path."""
        return follow(record, self.hops)


def paths_of(
    name: Name, *, as_text: bool = False, format: str = "", before: ReferencePath = (), depth: int = 0
) -> Iterator[ReferencePath]:
    """The reference paths on which the value of a name depends, those of display texts included.

    as_text: a reference is shown as the display text of its target.
    format: of the placeholder; some formats also read the unit or currency.
    """
    path, described = (*before, *name.way), ""
    if name.attribute is not None and name.attribute.name == DISPLAY_TEXT:
        described = name.repository
    elif as_text and name.kind is Kind.REFERENCE and name.target:
        reference = name.attribute or name.origin or EventName(name.text, name.kind, name.enum, name.target)
        path, described = (*path, reference), name.target
    if path:
        yield path
    if name.calculated:
        for read in paths_read(repositories[name.repository], name.calculated):
            hops = (EventName(ROWS, Kind.REFERENCE, None, hop) if isinstance(hop, str) else hop for hop in read)
            yield (*path, *hops)
    if name.attribute is not None and name.attribute.measure and format.upper() in SHOW_MEASURE:
        measure = bind_path(repositories[name.repository], name.attribute.measure)
        yield from paths_of(measure, as_text=True, before=path, depth=depth)
    if described and depth < MAX_DISPLAY_DEPTH:
        for repository in (repositories[described], *repositories[described].subtypes):
            for part in template_syntax.parse(repository.display_format):
                if isinstance(part, Placeholder) and part.path != ("EntityName",):
                    shown = bind(repository, part.name)
                    yield from paths_of(shown, as_text=True, format=part.format, before=path, depth=depth + 1)


def follow(
    record: Record, hops: Iterable[Attribute | EventName | Origin], events: EventValues | None = None
) -> Record | None:
    """The target of a path of references; None if one is null. Raises Refused for an origin that no longer exists."""
    current: Record | None = record
    for hop in hops:
        if current is None:
            return None
        if isinstance(hop, Origin):
            target = hop.find(current)
        else:
            target = (events or {}).get(hop.name) if isinstance(hop, EventName) else current.values.get(hop.name)
        current = None if target is None else current.dataset.load(hop.target, target)
        if current is None and isinstance(hop, Origin) and hop.must_exist:
            raise errors.Refused(errors.INTERPOLATION_FAILED, hop.name, errors.format_message(_GONE, [hop.name]))
    return current


def member_value(record: Record, attribute: Attribute) -> Any:
    """The canonical value of a member, calculated ones included."""
    if attribute.key_alias:
        return record.id
    if attribute.name == DISPLAY_TEXT:
        return record.dataset.display_text(record)
    return record.values.get(attribute.name)


def _member_reader(attribute: Attribute) -> Callable[[Record, EventValues], Any]:
    """A function that returns `member_value` of the attribute; resolves the attribute's kind once."""
    if attribute.key_alias or attribute.name == DISPLAY_TEXT:
        return lambda record, events: member_value(record, attribute)
    name = attribute.name
    return lambda record, events: record.values.get(name)


def bind(repository: Repository[Any], text: str, events: Iterable[EventName] = ()) -> Name:
    """Bind a name on entities of the repository. Raises UnknownName."""
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
    """Bind a path over references to a member. Raises UnknownName."""
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
    route = tuple(hops)
    if names[-1].lower() == "objectstate":
        return _object_state(".".join(names), route)
    calculated = _calculated(current, names[-1])
    if calculated is not None:
        return _bind_calculated(current, calculated, ".".join(names), route)
    behind = current.attribute_behind(names[-1])
    attribute = behind or _member(current, names[-1])
    member = _member_reader(attribute)
    kind = attribute.kind
    if behind is not None:
        kind = Kind.GUID if behind.is_reference else Kind.DECIMAL

    def over_the_route(record: Record, events: EventValues) -> Any:
        holder = follow(record, route)
        return None if holder is None else member(holder, events)

    read = over_the_route if route else member
    return Name(".".join(names), kind, read, attribute.enum, attribute.target, attribute, route, current.name)


def _calculated(repository: Repository[Any], name: str) -> Definition | None:
    """The calculated attribute of `#Name`, of its API name, or of a name that nothing else has."""
    if name.startswith("#"):
        return calculated_attributes.definition(repository, name[1:])
    if repository.attribute(name) is not None or repository.attribute_behind(name) is not None:
        return None
    return calculated_attributes.definition(repository, name)


def _bind_calculated(repository: Repository[Any], known: Definition, text: str, route: ReferencePath) -> Name:
    """A calculated attribute at the end of a path. Raises UnknownName for one that cannot be evaluated."""
    name = known.api_name
    try:
        value_type = type_of_calculated(repository, name)
    except errors.BadRequest as exc:
        raise UnknownName("{0}", errors.reason(exc)) from exc

    def read(record: Record, events: EventValues) -> Any:
        holder = follow(record, route)
        return None if holder is None else calculated_value(holder, name)

    return Name(
        text, kind_of(value_type), read, value_type.enum, hops=route, repository=repository.name, calculated=name
    )


def _object_state(text: str, route: ReferencePath) -> Name:
    def read(record: Record, events: EventValues) -> str | None:
        holder = follow(record, route)
        return None if holder is None else holder.object_state

    return Name(text, Kind.ENUM, read, OBJECT_STATE, hops=route)


def bind_from(origin: Origin, names: Iterable[str]) -> Name:
    """Bind a path that begins at an origin; without names the origin itself, as a reference. Raises UnknownName."""
    path = ".".join(names)
    if not path:
        return Name(
            origin.name,
            Kind.REFERENCE,
            lambda record, events: _found_id(record, origin),
            target=origin.target,
            origin=origin,
        )
    name = bind(repositories[origin.target], path)

    def read(record: Record, events: EventValues) -> Any:
        begin = follow(record, (origin,))
        return None if begin is None else name.read(begin, events)

    return replace(name, text=f"{origin.name}.{path}", read=read, hops=(origin, *name.hops))


def _found_id(record: Record, origin: Origin) -> str | None:
    found = follow(record, (origin,))
    return None if found is None else found.id


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
        return None if stored is None else canonical(kind, stored.get("Value"))

    def named(record: Record) -> str | None:
        id: str | None = (record.custom.get(code) or {}).get("ValueId")
        return id

    origin = Origin(text, definition.allowed_from, named) if definition.allowed_from else None
    return Name(text, kind, read, custom=code, named=origin)


def _bind_custom_of(repository: Repository[Any], path: str, code: str) -> Name:
    """Bind a custom property of the target of a reference path."""
    way = bind_path(repository, path.split("."))
    if way.attribute is None or not way.attribute.is_reference:
        raise UnknownName(_("{0}.{1} is not a reference, so no path leads through it"), repository.name, path)
    hops = (*way.hops, way.attribute)
    custom = _bind_custom(repositories[way.target], code)

    def read(record: Record, events: EventValues) -> Any:
        holder = follow(record, hops)
        return None if holder is None else custom.read(holder, events)

    return Name(f"{path}.{code}", custom.kind, read, hops=hops, custom=custom.custom, named=custom.named)


def custom_event_values(
    repository: Repository[Any], code: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
) -> EventValues:
    """$OldValue and $NewValue of a custom property that changes between two stored forms."""
    definition = custom_properties.by_code(repository, code)
    kind = Kind.STRING if definition is None else definition.kind
    values = {"$OldValue": old, "$NewValue": new}
    return {name: None if stored is None else canonical(kind, stored.get("Value")) for name, stored in values.items()}


def _bind_event(text: str, events: Iterable[EventName]) -> Name:
    known = {event.name.lower(): event for event in events}
    result = known.get(text.lower())
    if result is None:
        hint = near(text, [event.name for event in known.values()])
        raise UnknownName(_("The event has no attribute '{0}'.{1}"), text, hint)
    name = result.name

    def read(record: Record, events: EventValues) -> Any:
        return events.get(name)

    return Name(name, result.kind, read, result.enum, result.target)
