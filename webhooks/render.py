"""Renders a template to a request: URL, headers and body at the event, inside the dataset (spec 06, 6.2).

A value is escaped for its position: percent-encoded in the URL, without line breaks in headers, as JSON, form data or
XML in the body, by its content type. In the host and port of a URL a value may have the characters of a name or number;
others are percent-encoded, which gives a host that webhooks.send refuses.

A JSON body may be written in either style: with doubled braces as in every template, {{"no": "{DocumentNo}"}}, or as
plain JSON, {"no": "{DocumentNo}"}, where the text after a brace decides whether the brace belongs to the JSON.
Backslashes in it belong to the JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from domain.dataset.lookups.name_binding import EventName, EventValues, ReferencePath
from domain.dataset.records.record import Record
from domain.dataset.templates.record_template import Escape, InvalidTemplate, Template, compile_template
from domain.events.types import event_types
from domain.model.repository import Repository
from foundation.kinds import Kind
from webhooks.headers import Header, InvalidHeader, check_value, header_lines, value_of

T = TypeVar("T")
BodyFormat = Literal["json", "form", "xml", "text"]

_PLAIN_JSON = re.compile(r"\s*(\{\s*[\"}]|\[)")
_DOUBLED_BRACE = re.compile(r"\{\{\s*[\"}]")
_SCHEME = re.compile(r"https?://", re.I)
_ORIGIN_END = re.compile(r"[/?#]")
_STRUCTURAL_BRACE = re.compile(r"\{(?=\s*[\"}])")


class RenderedRequest(NamedTuple):
    """The request without the headers of each attempt (webhook-id, timestamp, signature, length)."""

    url: str
    headers: tuple[Header, ...]
    body: str


@dataclass(frozen=True, slots=True)
class CompiledUrl:
    """A URL template in its two parts.

    origin        scheme, host and port
    rest          path, query and fragment
    fixed_origin  the origin, if it has no placeholder
    """

    origin: Template
    rest: Template
    fixed_origin: str | None

    def render(self, record: Record, events: EventValues | None) -> str:
        """The URL for one entity."""
        origin = self.fixed_origin
        if origin is None:
            origin = self.origin.render(record, escape="host", events=events)
        return origin + self.rest.render(record, escape="url", events=events)


@dataclass(frozen=True, slots=True)
class CompiledRequest:
    """The compiled templates of one webhook.

    fixed_headers  all headers, if none has a placeholder
    """

    url: CompiledUrl
    headers: tuple[tuple[str, Template], ...]
    body: Template | None
    body_format: BodyFormat
    content_type: str | None
    fixed_headers: tuple[Header, ...] | None

    @property
    def paths(self) -> Iterator[ReferencePath]:
        """The reference paths of the placeholders."""
        templates = [self.url.origin, self.url.rest, *(template for _, template in self.headers)]
        for template in (*templates, *([] if self.body is None else [self.body])):
            yield from template.paths

    def render(self, record: Record, events: EventValues | None = None) -> RenderedRequest:
        """The request for one entity. Raises InvalidHeader, and Refused if an event attribute has no value."""
        headers = self.fixed_headers
        if headers is None:
            headers = _with_type(list(self._render_headers(record, events)), self.content_type)
        url = self.url.render(record, events)
        body = ""
        if self.body is not None:
            body = self.body.render(record, escape=_BODY_ESCAPES[self.body_format], events=events)
        return RenderedRequest(url, headers, body)

    def _render_headers(self, record: Record, events: EventValues | None) -> Iterator[Header]:
        for name, template in self.headers:
            value = template.render(record, escape="header", events=events)
            check_value(name, value)
            yield name, value


def compile_request(
    repository: Repository[Any],
    *,
    url: str,
    headers: str | None,
    body: str | None,
    content_type: str | None = None,
) -> CompiledRequest:
    """Bind the templates to the repository's names. Raises InvalidTemplate and InvalidHeader."""
    events = tuple(event_names(repository))
    lines = tuple(header_lines(headers))
    known_type = content_type or value_of(lines, "Content-Type")
    body_format = format_of(known_type, body or "")
    in_json = body_format == "json"
    source = double_braces(body) if body and in_json else body
    headers_ = tuple((name, compile_template(repository, value, events=events)) for name, value in lines)
    sent_type = content_type or (_GUESSED[body_format] if body else None)
    return CompiledRequest(
        url=_compile_url(compile_template(repository, url, events=events)),
        headers=headers_,
        body=compile_template(repository, source, events=events, in_json=in_json) if source else None,
        body_format=body_format,
        content_type=sent_type,
        fixed_headers=_fixed(headers_, sent_type),
    )


def _compile_url(template: Template) -> CompiledUrl:
    origin, rest = split_url(template.parts)
    fixed = "".join(part for part in origin if isinstance(part, str))
    return CompiledUrl(
        Template(template.source, origin),
        Template(template.source, rest),
        fixed if all(isinstance(part, str) for part in origin) else None,
    )


def split_url(parts: Sequence[str | T]) -> tuple[tuple[str | T, ...], tuple[str | T, ...]]:
    """(scheme, host and port; the rest) of a URL template. The first is empty if the URL has no such beginning."""
    if not parts or not isinstance(parts[0], str) or (scheme := _SCHEME.match(parts[0])) is None:
        return (), tuple(parts)
    begin = scheme.end()
    for index, part in enumerate(parts):
        if isinstance(part, str) and (end := _ORIGIN_END.search(part, begin if index == 0 else 0)):
            before, after = part[: end.start()], part[end.start() :]
            return (*parts[:index], *filter(None, [before])), (after, *parts[index + 1 :])
    return tuple(parts), ()


def _fixed(headers: Iterable[tuple[str, Template]], content_type: str | None) -> tuple[Header, ...] | None:
    """The headers, if none has a placeholder; else None."""
    written: list[Header] = []
    for name, template in headers:
        if template.literal is None:
            return None
        check_value(name, template.literal)
        written.append((name, template.literal))
    return _with_type(written, content_type)


def _with_type(headers: list[Header], content_type: str | None) -> tuple[Header, ...]:
    if content_type is not None and value_of(headers, "Content-Type") is None:
        headers.append(("Content-Type", content_type))
    return tuple(headers)


_BODY_ESCAPES: Mapping[BodyFormat, Escape] = {"json": "json", "form": "url", "xml": "xml", "text": "plain"}

_GUESSED = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "xml": "application/xml",
    "text": "text/plain; charset=utf-8",
}


def format_of(content_type: str | None, body: str) -> BodyFormat:
    """The escaping of values in the body: by the content type, else by the beginning of the body."""
    if content_type:
        media_type = content_type.partition(";")[0].strip().lower()
        if media_type.endswith(("/json", "+json")):
            return "json"
        if media_type.endswith(("/xml", "+xml")):
            return "xml"
        return "form" if media_type == "application/x-www-form-urlencoded" else "text"
    begin = body.lstrip()[:2]
    if begin == "{{" or _PLAIN_JSON.match(body):
        return "json"
    return "xml" if begin[:1] == "<" else "text"


def double_braces(body: str) -> str:
    """Double the JSON's own braces in a body of plain JSON, as the template language requires; other bodies are
    unchanged.

    `{` before a quote or `}` belongs to the JSON, since no name begins so; so does each `}` that closes no placeholder.
    The beginning of an array shows neither: its author has doubled the braces if any of them is doubled.
    """
    if not _PLAIN_JSON.match(body) or _DOUBLED_BRACE.search(body):
        return body
    written: list[str] = []
    index = 0
    while index < len(body):
        character = body[index]
        if character == "\\":
            written.append(body[index : index + 2])
            index += 2
            continue
        if character == "{" and not _STRUCTURAL_BRACE.match(body, index):
            end = body.find("}", index)
            if end < 0:
                return body
            written.append(body[index : end + 1])
            index = end + 1
            continue
        written.append(character * 2 if character in "{}" else character)
        index += 1
    return "".join(written)


def event_names(repository: Repository[Any]) -> Iterable[EventName]:
    """Every event attribute of the repository's event types, since the rules of a template are unknown."""
    names = {attribute.name for event in event_types.of(repository) for attribute in event.attributes}
    return [EventName(name, Kind.STRING) for name in sorted(names)]


def event_names_used(compiled: CompiledRequest) -> set[str]:
    """The event attributes (with `$`) that the templates need."""
    templates = [compiled.url.origin, compiled.url.rest, *(template for _, template in compiled.headers)]
    if compiled.body is not None:
        templates.append(compiled.body)
    return {part.event for template in templates for part in template.parts if not isinstance(part, str) and part.event}


__all__ = ["CompiledRequest", "InvalidHeader", "InvalidTemplate", "RenderedRequest", "compile_request"]
