"""Templates filled in from records (spec 05, 5.4): rule messages, webhook URLs and bodies, display texts.

    template = compile_template(repository, "Order {DocumentNo} of {Customer.Party.PartyName}")
    template.render(record, escape="text")

What a placeholder's value becomes depends on where the text goes:

text     for people: dates by the caller's language, a reference as the display text of what it leads to
header   as text, with control characters as spaces, so that a value cannot begin a header of its own
url      for machines (ISO 8601 dates, references as guids), percent-encoded (RFC 3986, 2.1)
host     as url, but letters of every script stay as they are, for IDNA: part of a host name, or a port
json     for machines; escaped inside a string literal, and a JSON value of its own type elsewhere
xml      for machines; escaped for an element or an attribute
plain    for machines, nothing escaped: values that are parsed again
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from xml.sax.saxutils import escape as xml_escape

import orjson
from django.db import connection
from django.utils import formats, translation
from django.utils.translation import gettext_noop as _

from domain.dataset.checks import access
from domain.dataset.lookups.names import EventName, EventValues, Name, UnknownName, bind, bind_path, follow
from domain.dataset.records.record import Record
from domain.model import interpolation
from domain.model.attributes import Attribute
from domain.model.interpolation import Placeholder, TemplateError
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.kinds import Kind

Escape = Literal["text", "header", "url", "host", "json", "xml", "plain"]

_XML_QUOTES = {'"': "&quot;", "'": "&apos;"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_FORMATS: Mapping[Kind, re.Pattern[str]] = {
    Kind.MULTILANGUAGE: re.compile(r"[Tt]|[A-Za-z]{2,3}([-_][A-Za-z]{2,4})?"),
    Kind.INT: re.compile(r"[Nn]\d{1,2}"),
    Kind.DECIMAL: re.compile(r"[Nn]\d{1,2}"),
    Kind.AMOUNT: re.compile(r"[Nn]\d{1,2}|CV|cv"),
    Kind.QUANTITY: re.compile(r"[Nn]\d{1,2}|[Qq]"),
    Kind.DATE: re.compile(r".*[dMyHms].*"),
    Kind.DATETIME: re.compile(r".*[dMyHms].*"),
}


class InvalidTemplate(ValueError):
    """The template cannot be filled in for any entity; `problems` says why, one sentence each."""

    def __init__(self, template: str, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.template = template
        self.problems = problems


@dataclass(frozen=True, slots=True)
class _Slot:
    """A placeholder bound to its value.

    event    the event attribute (with `$`) that it needs; "" where the entity or the call tell it
    quoted   inside a JSON string literal
    """

    placeholder: Placeholder
    kind: Kind
    read: Callable[[Record, EventValues], Any]
    name: Name | None
    event: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Template:
    """A template whose every name is known."""

    source: str
    parts: tuple[str | _Slot, ...]

    @property
    def literal(self) -> str | None:
        """The text of a template without placeholders; else None."""
        literals = [part for part in self.parts if isinstance(part, str)]
        return "".join(literals) if len(literals) == len(self.parts) else None

    def render(self, record: Record, *, escape: Escape = "text", events: EventValues | None = None) -> str:
        """The text for one record. Raises Refused(INTERPOLATION_FAILED) where an event attribute is not given."""
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
            hidden = part.name is not None and part.name.hops and _hidden(part.name.hops, record)
            value = None if hidden else part.read(record, given)
            written.append(write(part, record, value))
        return "".join(written)


def compile_template(repository: Repository[Any], source: str, *, events: Iterable[EventName] = ()) -> Template:
    """Bind every placeholder to the repository's names. Raises InvalidTemplate naming each that means nothing."""
    known = tuple(events)
    try:
        parsed = interpolation.parse(source)
    except TemplateError as exc:
        raise InvalidTemplate(source, [errors.reason(exc)]) from exc
    parts: list[str | _Slot] = []
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
) -> _Slot:
    built_in = _built_in(repository, placeholder)
    if built_in is not None:
        kind, read = built_in
        name = None
    else:
        try:
            name = bind(repository, placeholder.name, events)
        except UnknownName as exc:
            if placeholder.sigil == "$":
                hint = near(placeholder.name, [*_CALL_VALUES, *(event.name for event in events)])
                raise UnknownName(_("Nothing here tells '{0}'.{1}"), placeholder.name, hint) from exc
            raise
        kind, read = name.kind, name.read
    if placeholder.format:
        accepted = _FORMATS.get(kind)
        if accepted is None or accepted.fullmatch(placeholder.format) is None:
            raise UnknownName(_("The format '{0}' does not fit {1}"), placeholder.format, f"{{{placeholder.name}}}")
    event = name.text if name is not None and placeholder.sigil == "$" else ""
    return _Slot(placeholder, kind, read, name, event, quoted)


def _built_in(
    repository: Repository[Any], placeholder: Placeholder
) -> tuple[Kind, Callable[[Record, EventValues], Any]] | None:
    if placeholder.sigil == "$":
        return _CALL_VALUES.get(placeholder.name.lower())
    if placeholder.sigil == "" and placeholder.path == ("EntityName",):
        # Documents have an attribute of this name too, which holds the same.
        return Kind.STRING, lambda record, events: record.repository.set_name
    return None


def database_name() -> str:
    """What `{$dbname}` says: the main database's name."""
    return Path(str(connection.settings_dict["NAME"])).stem


def _user(record: Record, member: str) -> Any:
    user = record.dataset.context.user
    return None if user is None else getattr(user, member)


#: Values of the call: name in lower case → kind, reader.
_CALL_VALUES: Mapping[str, tuple[Kind, Callable[[Any, EventValues], Any]]] = {
    "$date": (Kind.DATE, lambda record, events: record.dataset.today()),
    "$now": (Kind.DATETIME, lambda record, events: record.dataset.now()),
    "$dbname": (Kind.STRING, lambda record, events: database_name()),
    "$user": (Kind.STRING, lambda record, events: _user(record, "name") or _user(record, "login")),
    "$user.id": (Kind.GUID, lambda record, events: _user(record, "id")),
    "$user.name": (Kind.STRING, lambda record, events: _user(record, "name") or _user(record, "login")),
    "$user.login": (Kind.STRING, lambda record, events: _user(record, "login")),
    "$user.email": (Kind.STRING, lambda record, events: _user(record, "email")),
}


def _hidden(hops: Sequence[Attribute], record: Record) -> bool:
    """Whether the path leads through something that the caller may not see; it then reads as null (spec 01, 1.7)."""
    on_the_way = [follow(record, hops[: count + 1]) for count in range(len(hops))]
    return any(found is not None and not access.record_visible(found) for found in on_the_way)


# --- writing ------------------------------------------------------------------------------------------------------


def _in_text(slot: _Slot, record: Record, value: Any) -> str:
    """As people read it."""
    if slot.kind is Kind.REFERENCE and value is not None:
        return _reference_text(slot, record, value)
    if isinstance(value, datetime.date) and not slot.placeholder.format:
        return date_text(value, record.dataset.context.language)
    return _plain(slot, record, value)


def _in_header(slot: _Slot, record: Record, value: Any) -> str:
    return _CONTROL.sub(" ", _in_text(slot, record, value))


def _in_url(slot: _Slot, record: Record, value: Any) -> str:
    text = _plain(slot, record, value)
    return text if text.isalnum() and text.isascii() else quote(text, safe="")


def _in_host(slot: _Slot, record: Record, value: Any) -> str:
    """Percent-encode what a host name cannot contain, so that the value cannot end the host; sending refuses it."""
    return "".join(
        character if character in "-._" or unicodedata.category(character)[0] in "LMN" else quote(character, safe="")
        for character in _plain(slot, record, value)
    )


def _in_json(slot: _Slot, record: Record, value: Any) -> str:
    """Outside of string literals null, true, 12.50; everything else becomes a string."""
    if slot.quoted:
        return orjson.dumps(_plain(slot, record, value)).decode()[1:-1]
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = _plain(slot, record, value)
    if isinstance(value, int | Decimal) and slot.placeholder.format.upper() not in ("Q", "CV"):
        return text
    return orjson.dumps(text).decode()


def _in_xml(slot: _Slot, record: Record, value: Any) -> str:
    return xml_escape(_plain(slot, record, value), _XML_QUOTES)


def _plain(slot: _Slot, record: Record, value: Any) -> str:
    """As machines read it, before it is escaped for its place."""
    if type(value) is str:
        return value  # most placeholders are of texts
    if value is None:
        return ""
    format, language = slot.placeholder.format, record.dataset.context.language
    if type(value) is dict:
        return interpolation.format_texts(value, format, language)
    measure = ""
    if format.upper() in ("Q", "CV") and slot.name is not None and slot.name.attribute is not None:
        holder = slot.name.holder(record)
        measure = "" if holder is None else measure_text(holder, slot.name.attribute)
    return interpolation.format_value(value, format, language=language, measure=measure)


_WRITERS: Mapping[Escape, Callable[[_Slot, Record, Any], str]] = {
    "text": _in_text,
    "header": _in_header,
    "url": _in_url,
    "host": _in_host,
    "json": _in_json,
    "xml": _in_xml,
    "plain": _plain,
}


def _reference_text(slot: _Slot, record: Record, value: str) -> str:
    target = slot.name.target if slot.name is not None else ""
    found = record.dataset.load(target, value) if target in repositories else None
    if found is not None and not access.record_visible(found):
        return ""
    return value if found is None else found.describe()


def date_text(value: datetime.date, language: str) -> str:
    """A date, or a date-time in UTC, as people of the language write it."""
    with translation.override(language):
        if isinstance(value, datetime.datetime):
            return str(formats.date_format(value.astimezone(datetime.UTC), "SHORT_DATETIME_FORMAT"))
        return str(formats.date_format(value, "SHORT_DATE_FORMAT"))


def measure_text(record: Record, attribute: Attribute) -> str:
    """The code of the currency or unit that a measured value of the record goes with; "" where there is none yet."""
    if not attribute.measure:
        return ""
    name = bind_path(record.repository, attribute.measure)
    target = name.read(record, {})
    found = None if target is None else record.dataset.load(name.target, target)
    if found is None or not access.record_visible(found):
        return ""
    code = found.repository.code
    return str(found.values.get(code.name) or "") if code is not None else found.describe()
