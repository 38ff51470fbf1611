"""Multipart batches: application/http requests and responses in multipart/mixed (OData Protocol 4.01, 11.7.7)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from http import HTTPStatus

from domain.odata.message.json_body import invalid_body
from domain.odata.message.message import ODataRequest, ODataResponse
from domain.odata.service.batch.parts import Done, Part, Serve
from domain.odata.service.batch.runner import Runner, continue_on_error
from foundation import errors
from foundation.messages import TranslatableMessage as Message

_BOUNDARY = re.compile(r"boundary=(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>[^\s;]+))", re.IGNORECASE)
#: Maximum digits of a part's Content-Length.
_LENGTH_DIGITS = 10
_REQUEST_LINE = re.compile(r"(?P<method>[A-Z]+) (?P<url>\S+)(?: HTTP/\d\.\d)?", re.IGNORECASE)


def run(request: ODataRequest, serve: Serve) -> ODataResponse:
    """Handle a multipart batch. Raises BadRequest for an invalid one."""
    parts: list[Part] = []
    for number, (headers, body) in enumerate(_split(request.body, _boundary(request.headers.get("content-type", "")))):
        if headers.get("content-type", "").lower().startswith("multipart/mixed"):
            changeset = f"changeset{number}"
            inner = list(_split(body, _boundary(headers["content-type"])))
            parts.extend(_http_part(inner_headers, inner_body, changeset) for inner_headers, inner_body in inner)
        else:
            parts.append(_http_part(headers, body, ""))
    boundary = f"batchresponse_{secrets.token_hex(8)}"
    out: list[bytes] = []
    runner = Runner(request, serve)
    for group in runner.run(parts, continue_on_error=continue_on_error(request, default=False)):
        out.append(f"--{boundary}\r\n".encode())
        # A failed changeset has a single error response, without a nested changeset (11.7.4).
        if group[0].part.group and not group[0].failed:
            inner_boundary = f"changesetresponse_{secrets.token_hex(8)}"
            out.append(f"Content-Type: multipart/mixed; boundary={inner_boundary}\r\n\r\n".encode())
            out.extend(f"--{inner_boundary}\r\n".encode() + _http_answer(done) for done in group)
            out.append(f"--{inner_boundary}--\r\n".encode())
        else:
            out.append(_http_answer(group[0]))
    out.append(f"--{boundary}--\r\n".encode())
    return runner.response(b"".join(out), f"multipart/mixed; boundary={boundary}")


def _boundary(content_type: str) -> str:
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise errors.BadRequest(errors.INVALID_HEADER, "Content-Type", Message("multipart/mixed needs a boundary"))
    return match["quoted"] or match["plain"]


def _split(body: bytes, boundary: str) -> Iterator[tuple[dict[str, str], bytes]]:
    """(headers, content) of each part (RFC 2046, 5.1); lines may end in LF or CRLF."""
    delimiter = b"--" + boundary.encode()
    pieces = re.split(rb"(?:^|\r?\n)" + re.escape(delimiter) + rb"(?P<end>--)?[ \t]*(?:\r?\n|$)", body)
    # re.split gives text, group, text, group …; the text before the first delimiter is preamble.
    if len(pieces) < 3:
        raise invalid_body(Message("no part starts with --{0}", boundary))
    closed = False
    for index in range(1, len(pieces) - 1, 2):
        if pieces[index] is not None:
            closed = True
            break
        yield _headers_and_content(pieces[index + 1])
    if not closed:
        raise invalid_body(Message("the closing --{0}-- is missing", boundary))


def _headers_and_content(raw: bytes) -> tuple[dict[str, str], bytes]:
    if raw.startswith((b"\r\n", b"\n")):
        return {}, raw.lstrip(b"\r\n")
    separated = re.split(rb"\r?\n\r?\n", raw, maxsplit=1)
    headers: dict[str, str] = {}
    # Without a body there may be only the line break before the delimiter, which belongs to the delimiter.
    for line in re.split(rb"\r?\n", separated[0].removesuffix(b"\n").removesuffix(b"\r")):
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon and not line.strip():
            raise invalid_body(Message("a part of a batch is application/http, not {0}", Message("nothing")))
        if not colon:
            raise invalid_body(Message("'{0}' is no header line", line.decode("latin-1")[:60]))
        headers[name.strip().lower()] = value.strip()
    return headers, separated[1] if len(separated) > 1 else b""


def _http_part(headers: dict[str, str], content: bytes, group: str) -> Part:
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/http":
        raise invalid_body(Message("a part of a batch is application/http, not {0}", media or Message("nothing")))
    first, _, rest = content.lstrip(b"\r\n").partition(b"\n")
    match = _REQUEST_LINE.fullmatch(first.strip().decode("latin-1"))
    if match is None:
        raise invalid_body(Message("'{0}' is no request line", first.decode("latin-1")[:60]))
    stripped = rest.lstrip(b" \t")
    if stripped in (b"", b"\r\n", b"\n"):
        inner_headers: dict[str, str] = {}
        body = b""
    else:
        inner_headers, body = _headers_and_content(rest)
    length = inner_headers.get("content-length", "")
    if length:
        if not (length.isascii() and length.isdigit() and len(length) <= _LENGTH_DIGITS):
            raise errors.BadRequest(
                errors.INVALID_HEADER,
                "Content-Length",
                Message("it is a whole number of bytes"),
                target="Content-Length",
            )
        body = body[: int(length)]
    return Part(
        id=headers.get("content-id", "").strip("<>") or inner_headers.get("content-id", ""),
        method=match["method"].upper(),
        url=match["url"],
        headers={name: value for name, value in inner_headers.items() if name not in ("host", "content-length")},
        body=body,
        group=group,
    )


def _http_answer(done: Done) -> bytes:
    response = done.response
    try:
        reason = HTTPStatus(response.status).phrase
    except ValueError:
        reason = ""
    lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary"]
    if done.part.id:
        lines.append(f"Content-ID: {done.part.id}")
    lines.extend(["", f"HTTP/1.1 {response.status} {reason}"])
    lines.extend(f"{name}: {value}" for name, value in response.headers.items())
    lines.append(f"Content-Length: {len(response.body)}")
    return "\r\n".join([*lines, "", ""]).encode() + response.body + b"\r\n"
