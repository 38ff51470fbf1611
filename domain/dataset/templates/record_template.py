"""Renders templates for records (spec 05, 5.4): rule messages, webhook URLs and bodies, display texts.

    template = compile_template(repository, "Order {DocumentNo} of {Customer.Party.PartyName}")
    template.render(record, escape="text")

The escape of a placeholder's value depends on the target:

text     for people: numbers and dates by the caller's culture, a reference as the display text of its target
display  as text, but formatted as the read engine does it in SQL: parts of display texts
header   as text, with control characters as spaces, so that a value cannot begin another header
url      for machines (ISO 8601 dates, references as guids, a culture of machines), percent-encoded (RFC 3986, 2.1)
host     as url, but letters of every script stay as they are, for IDNA: part of a host name, or a port
json     for machines; escaped inside a string literal, and a JSON value of its own type elsewhere
xml      for machines; escaped for an element or an attribute
plain    for machines, nothing escaped: values that are parsed again
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import quote
from xml.sax.saxutils import escape as xml_escape

import orjson
from django.utils.translation import gettext_noop as _

from domain.dataset.checks import access
from domain.dataset.lookups.name_binding import (
    EventName,
    EventValues,
    Name,
    Origin,
    ReferencePath,
    UnknownName,
    bind,
    bind_from,
    bind_path,
    follow,
    paths_of,
)
from domain.dataset.records.record import Record
from domain.dataset.templates.known_values import EMAIL, ENTITY_NAME, KNOWN_VALUES, ORIGINS, OWN_NAMES, KnownValue
from domain.model import template_syntax
from domain.model.attributes import Attribute
from domain.model.formats import specifiers
from domain.model.formats.specifiers import Reader
from domain.model.formats.texts import format_property
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.template_syntax import Placeholder, TemplateError
from foundation import errors
from foundation.guids import is_guid, parse_guid
from foundation.kinds import Kind

Escape = Literal["text", "display", "header", "url", "host", "json", "xml", "plain"]

_XML_QUOTES = {'"': "&quot;", "'": "&apos;"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_KEYED = re.compile(r"(?P<set>\w+)\((?P<key>[^()]*)\)")
#: A number of JSON (RFC 8259, 6), without an exponent.
_JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")


class InvalidTemplate(ValueError):
    """A template with invalid placeholders; `problems` are sentences."""

    def __init__(self, template: str, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.template = template
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Slot:
    """A bound placeholder.

    format   of the placeholder, else the value's own for people
    event    the event attribute (with `$`) that it needs; "" if the entity or the call has the value
    quoted   inside a JSON string literal
    """

    placeholder: Placeholder
    kind: Kind
    read: Callable[[Record, EventValues], Any]
    name: Name | None
    format: str
    event: str
    quoted: bool

    @property
    def is_checked(self) -> bool:
        """Whether the value is behind references, whose targets the caller and the author must be allowed to read."""
        return self.name is not None and not _is_own_name(self.name)


@dataclass(frozen=True, slots=True)
class Template:
    """A template with bound placeholders."""

    source: str
    parts: tuple[str | Slot, ...]

    @property
    def literal(self) -> str | None:
        """The text of a template without placeholders; else None."""
        literals = [part for part in self.parts if isinstance(part, str)]
        return "".join(literals) if len(literals) == len(self.parts) else None

    @property
    def paths(self) -> Iterator[ReferencePath]:
        """The reference paths that the placeholders read, including those of display texts."""
        for part in self.parts:
            if isinstance(part, Slot) and part.name is not None and part.is_checked:
                yield from paths_of(part.name, as_text=True, format=part.placeholder.format)
            elif isinstance(part, Slot) and part.placeholder.name.lower() == EMAIL.name:
                yield (EMAIL,)

    def render(self, record: Record, *, escape: Escape = "text", events: EventValues | None = None) -> str:
        """The text for one record. Raises Refused(INTERPOLATION_FAILED) for a missing event attribute."""
        given = events or {}
        write = _WRITERS[escape]
        written: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                written.append(part)
                continue
            if part.event and part.event not in given:
                name = part.placeholder.name
                why = errors.format_message(_("the event does not tell {0}"), [name])
                raise errors.Refused(errors.INTERPOLATION_FAILED, self.source, why, target=name)
            hidden = part.name is not None and part.is_checked and part.name.way and _hidden(part.name.way, record)
            value = None if hidden else _read(part, record, given, escape)
            written.append(write(part, record, value))
        return "".join(written)


def _read(slot: Slot, record: Record, given: EventValues, escape: Escape) -> Any:
    """The value; null in a display text for a calculated attribute that fails, as in lists."""
    try:
        return slot.read(record, given)
    except errors.Refused as exc:
        if escape == "display" and exc.code in (errors.CALCULATION_FAILED, errors.CALCULATION_THREW):
            return None
        raise


def compile_template(
    repository: Repository[Any], source: str, *, events: Iterable[EventName] = (), in_json: bool = False
) -> Template:
    """Bind every placeholder to the repository's names. Raises InvalidTemplate with each unknown name.

    in_json: see template_syntax.parse.
    """
    known = tuple(events)
    try:
        parsed = template_syntax.parse(source, in_json=in_json)
    except TemplateError as exc:
        raise InvalidTemplate(source, [errors.reason(exc)]) from exc
    parts: list[str | Slot] = []
    problems: list[str] = []
    quoted = False
    for part in parsed:
        if isinstance(part, str):
            parts.append(part)
            quoted = _inside_literal(part, quoted)
            continue
        try:
            parts.append(_bind_slot(repository, part, known, quoted))
        except UnknownName as exc:
            problems.append(str(exc))
    if problems:
        raise InvalidTemplate(source, problems)
    return Template(source, tuple(parts))


def _inside_literal(text: str, quoted: bool) -> bool:
    """Whether a JSON string literal is open after the text."""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and quoted:
            escaped = True
        elif character == '"':
            quoted = not quoted
    return quoted


# --- names --------------------------------------------------------------------------------------------------------


def _bind_slot(
    repository: Repository[Any], placeholder: Placeholder, events: tuple[EventName, ...], quoted: bool
) -> Slot:
    known = _known_value(placeholder)
    if known is not None:
        kind, read, name, format = known.kind, known.read, None, placeholder.format or known.format
    else:
        name = _bind_name(repository, placeholder, events)
        kind, read, format = name.kind, name.read, placeholder.format
    is_property = name is not None and bool(name.custom)
    if format and not specifiers.accepts(kind, format, is_property=is_property):
        raise _bad_format(placeholder, kind, is_property)
    event = name.text if name is not None and placeholder.sigil == "$" and name.origin is None and not name.hops else ""
    return Slot(placeholder, kind, read, name, format, event, quoted)


def _bad_format(placeholder: Placeholder, kind: Kind, is_property: bool) -> UnknownName:
    written = f"{{{placeholder.name}}}"
    allowed = specifiers.allowed(kind, is_property=is_property)
    if not allowed:
        return UnknownName(_("The format '{0}' does not fit {1}, which has no formats"), placeholder.format, written)
    return UnknownName(_("The format '{0}' does not fit {1}; possible are {2}"), placeholder.format, written, allowed)


def _bind_name(repository: Repository[Any], placeholder: Placeholder, events: tuple[EventName, ...]) -> Name:
    first, *rest = placeholder.path
    if placeholder.sigil == "$" and (origin := ORIGINS.get(f"${first}".lower())) is not None:
        return bind_from(origin, rest)
    if placeholder.sigil == "" and (keyed := _KEYED.fullmatch(first)) is not None:
        return bind_from(_origin_by_key(keyed["set"], keyed["key"]), rest)
    try:
        return bind(repository, placeholder.name, events)
    except UnknownName as exc:
        if placeholder.sigil == "$":
            hint = near(placeholder.name, [*KNOWN_VALUES, *ORIGINS, *(event.name for event in events)])
            raise UnknownName(_("Nothing here tells '{0}'.{1}"), placeholder.name, hint) from exc
        raise


def _origin_by_key(set_name: str, key: str) -> Origin:
    """An entity that the template names by its key; it must exist, now and when the template is rendered."""
    repository = repositories.for_entity_name(set_name)
    if repository is None:
        raise UnknownName(_("There is no entity set '{0}'.{1}"), set_name, near(set_name, repositories.set_names()))
    if not is_guid(key):
        raise UnknownName(_("'{0}' is not a guid"), key)
    guid = parse_guid(key)
    if not repository.model._default_manager.filter(pk=guid).exists():
        raise UnknownName(_("There is no {0}"), f"{repository.set_name}({guid})")
    return Origin(f"{repository.set_name}({guid})", repository.name, lambda record: guid, must_exist=True)


def _known_value(placeholder: Placeholder) -> KnownValue | None:
    """The value of the call; None for other placeholders, and for a format that the value does not have."""
    if placeholder.sigil == "$":
        known = KNOWN_VALUES.get(placeholder.name.lower())
        # {$user.Name} is in the context, {$user.Name:EN} is read from the database.
        is_path = len(placeholder.path) > 1 and bool(placeholder.format)
        return None if is_path else known
    # Documents have an attribute of this name too, with the same value.
    return ENTITY_NAME if placeholder.sigil == "" and placeholder.path == ("EntityName",) else None


def _is_own_name(name: Name) -> bool:
    """Whether the name is the caller's own, which is known without reading users."""
    return name.hops == (ORIGINS["$user"],) and name.attribute is not None and name.attribute.name in OWN_NAMES


def _hidden(hops: ReferencePath, record: Record) -> bool:
    """Whether the path contains a reference that is hidden from the caller; it then reads as null (spec 01, 1.7)."""
    on_the_way = [follow(record, hops[: count + 1]) for count in range(len(hops))]
    return any(found is not None and not access.record_visible(found) for found in on_the_way)


# --- rendering ----------------------------------------------------------------------------------------------------


def _in_text(slot: Slot, record: Record, value: Any) -> str:
    """The value for people."""
    if slot.kind is Kind.REFERENCE and value is not None:
        return _reference_text(slot, record, value)
    reader = Reader(record.dataset.context.language, country_tag=record.dataset.context.culture)
    if slot.format:
        return _formatted(slot, record, value, slot.format, reader)
    if isinstance(value, datetime.date):
        kind = Kind.DATETIME if isinstance(value, datetime.datetime) else Kind.DATE
        return specifiers.formatted(value, kind, "G" if kind is Kind.DATETIME else "d", reader)
    return _plain(slot, record, value)


def _in_display(slot: Slot, record: Record, value: Any) -> str:
    """The value as a part of a display text, as domain.query.bind.texts has it."""
    format, language = slot.placeholder.format, record.dataset.context.language
    if slot.kind is Kind.REFERENCE and value is not None:
        return _reference_text(slot, record, value)
    if isinstance(value, datetime.date) and not format:
        format = template_syntax.culture_date_pattern(language, with_time=isinstance(value, datetime.datetime))
    measure = _measure_of(slot, record) if specifiers.shows_measure(slot.kind, format) else ""
    return template_syntax.format_value(value, format, language=language, measure=measure)


def _in_header(slot: Slot, record: Record, value: Any) -> str:
    return _CONTROL.sub(" ", _in_text(slot, record, value))


def _in_url(slot: Slot, record: Record, value: Any) -> str:
    text = _plain(slot, record, value)
    return text if text.isalnum() and text.isascii() else quote(text, safe="")


def _in_host(slot: Slot, record: Record, value: Any) -> str:
    """Percent-encode characters that a host name cannot contain: the value cannot end the host, and sending refuses
    the URL.
    """
    return "".join(
        character if character in "-._" or unicodedata.category(character)[0] in "LMN" else quote(character, safe="")
        for character in _plain(slot, record, value)
    )


def _in_json(slot: Slot, record: Record, value: Any) -> str:
    """The value as JSON: outside of string literals null, booleans and numbers keep their type, others are strings."""
    if slot.quoted:
        return orjson.dumps(_plain(slot, record, value)).decode()[1:-1]
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json_literal(_plain(slot, record, value), is_number=isinstance(value, int | Decimal))


def json_literal(text: str, *, is_number: bool) -> str:
    """The text of a value as JSON: a number, if the formatted text is still a JSON number; else a string."""
    return text if is_number and _JSON_NUMBER.fullmatch(text) else orjson.dumps(text).decode()


def sample_text(slot: Slot) -> str:
    """The text of a sample value for machines, in the placeholder's format; "x" for kinds without one."""
    sample = _SAMPLES.get(slot.kind)
    if sample is None or not slot.placeholder.format:
        return "x" if sample is None else str(sample)
    return specifiers.formatted(sample, slot.kind, slot.placeholder.format, Reader("en", is_machine=True), measure="x")


#: Kinds that are numbers in JSON, with sample values.
_SAMPLES: Mapping[Kind, int | Decimal] = {
    Kind.INT: 1,
    Kind.DECIMAL: Decimal(1),
    Kind.AMOUNT: Decimal(1),
    Kind.QUANTITY: Decimal(1),
}


def _in_xml(slot: Slot, record: Record, value: Any) -> str:
    return xml_escape(_plain(slot, record, value), _XML_QUOTES)


def _plain(slot: Slot, record: Record, value: Any) -> str:
    """The value for machines, before escaping."""
    format, language = slot.placeholder.format, record.dataset.context.language
    if format:
        return _formatted(slot, record, value, format, Reader(language, is_machine=True))
    if type(value) is str:
        return value  # fast path: most values are texts
    if value is None:
        return ""
    if slot.format:
        return specifiers.formatted(value, slot.kind, slot.format, Reader(language, is_machine=True))
    return template_syntax.format_value(value, language=language)


def _formatted(slot: Slot, record: Record, value: Any, format: str, reader: Reader) -> str:
    """The value in a format; null is the empty text."""
    if value is None:
        return ""
    if slot.name is not None and slot.name.custom and specifiers.is_property_format(slot.kind, format):
        holder = slot.name.holder(record)
        stored = None if holder is None else holder.custom.get(slot.name.custom)
        return format_property(stored or {}, template_syntax.format_value(value), format, reader.language)
    measure = _measure_of(slot, record) if specifiers.shows_measure(slot.kind, format) else ""
    return specifiers.formatted(value, slot.kind, format, reader, measure=measure)


def _measure_of(slot: Slot, record: Record) -> str:
    """The code of the unit or currency of the value; "" for none."""
    if slot.name is None or slot.name.attribute is None:
        return ""
    holder = slot.name.holder(record)
    return "" if holder is None else measure_text(holder, slot.name.attribute)


_WRITERS: Mapping[Escape, Callable[[Slot, Record, Any], str]] = {
    "text": _in_text,
    "display": _in_display,
    "header": _in_header,
    "url": _in_url,
    "host": _in_host,
    "json": _in_json,
    "xml": _in_xml,
    "plain": _plain,
}


def _reference_text(slot: Slot, record: Record, value: str) -> str:
    target = slot.name.target if slot.name is not None else ""
    result = record.dataset.load(target, value) if target in repositories else None
    if result is not None and not access.record_visible(result):
        return ""
    return value if result is None else result.dataset.display_text(result)


def measure_text(record: Record, attribute: Attribute) -> str:
    """The code of the currency or unit of a measured value of the record; "" if there is none yet."""
    if not attribute.measure:
        return ""
    name = bind_path(record.repository, attribute.measure)
    result = follow(record, way := (*name.hops, name.attribute)) if name.attribute is not None else None
    if result is None or _hidden(way, record):
        return ""
    code = result.repository.code
    return str(result.values.get(code.name) or "") if code is not None else result.dataset.display_text(result)
