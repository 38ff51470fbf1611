"""From a template to a request: URL, headers and body filled in at the event, inside the dataset (spec 06, 6.2).

A value is escaped for where it goes: percent-encoded in the URL, without line breaks in headers, as JSON, form data or
XML in the body, by its content type.

A JSON body may be written in either style: with doubled braces as in every template, {{"no": "{DocumentNo}"}}, or as
plain JSON, {"no": "{DocumentNo}"}, where the braces of the JSON itself are recognised by what follows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from domain.dataset.names import EventName, EventValues
from domain.dataset.record import Record
from domain.dataset.templates import Escape, InvalidTemplate, Template, compile_template
from domain.events import event_types
from domain.model.repository import Repository
from foundation.kinds import Kind
from webhooks.headers import Header, InvalidHeader, check_value, header_lines, value_of

BodyFormat = Literal["json", "form", "xml", "text"]

_PLAIN_JSON = re.compile(r"\s*(\{\s*[\"}]|\[)")
_ORIGIN = re.compile(r"(https?://[^/?#]+)?", re.I)
_STRUCTURAL_BRACE = re.compile(r"\{(?=\s*[\"}])")


class RenderedRequest(NamedTuple):
    """What will be sent, but for what each attempt adds (webhook-id, timestamp, signature, length)."""

    url: str
    headers: tuple[Header, ...]
    body: str


@dataclass(frozen=True, slots=True)
class CompiledRequest:
    """The templates of one webhook, every name known.

    fixed_headers  all of them, where none depends on the entity
    """

    url: Template
    headers: tuple[tuple[str, Template], ...]
    body: Template | None
    body_format: BodyFormat
    content_type: str | None
    fixed_headers: tuple[Header, ...] | None

    def render(self, record: Record, events: EventValues | None = None) -> RenderedRequest:
        """The request for one entity. Raises InvalidHeader, and Refused where an event attribute is not told."""
        headers = self.fixed_headers
        if headers is None:
            headers = _with_type(list(self._render_headers(record, events)), self.content_type)
        url = self.url.render(record, escape="url", events=events)
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
    source = double_braces(body) if body and body_format == "json" else body
    headers_ = tuple((name, compile_template(repository, value, events=events)) for name, value in lines)
    sent_type = content_type or (_GUESSED[body_format] if body else None)
    return CompiledRequest(
        url=compile_template(repository, url, events=events),
        headers=headers_,
        body=compile_template(repository, source, events=events) if source else None,
        body_format=body_format,
        content_type=sent_type,
        fixed_headers=_fixed(headers_, sent_type),
    )


def _fixed(headers: Iterable[tuple[str, Template]], content_type: str | None) -> tuple[Header, ...] | None:
    """What the headers are for every entity; None where one has a placeholder."""
    written: list[Header] = []
    for name, template in headers:
        literals = [part for part in template.parts if isinstance(part, str)]
        if len(literals) != len(template.parts):
            return None
        written.append((name, "".join(literals)))
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


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL template, "" where it has none. They are literal: docs/decisions.md."""
    found = _ORIGIN.match(url)
    return found[0] if found else ""


def format_of(content_type: str | None, body: str) -> BodyFormat:
    """How values in the body are escaped: by the content type, else by how the body begins."""
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
    """A body written as plain JSON with its own braces doubled, as the template language wants; others as they are.

    `{` before a quote or `}` belongs to the JSON, for no name begins so; each `}` that closes no placeholder does too.
    """
    if not _PLAIN_JSON.match(body):
        return body
    written: list[str] = []
    index = 0
    while index < len(body):
        character = body[index]
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
    """Every event attribute that a rule on the repository may tell; a template does not know its rules."""
    names = {attribute.name for event in event_types.of(repository) for attribute in event.attributes}
    return [EventName(name, Kind.STRING) for name in sorted(names)]


def event_names_used(compiled: CompiledRequest) -> set[str]:
    """The event attributes (with `$`) that the templates need."""
    templates = [compiled.url, *(template for _, template in compiled.headers)]
    if compiled.body is not None:
        templates.append(compiled.body)
    return {part.event for template in templates for part in template.parts if not isinstance(part, str) and part.event}


__all__ = ["CompiledRequest", "InvalidHeader", "InvalidTemplate", "RenderedRequest", "compile_request"]
