"""Parses header lines of templates, checks reserved names, and masks secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from foundation.egress.headers import CONNECTION_HEADERS, Header, InvalidHeader, check_value, is_header_name
from foundation.encryption import Unreadable, decrypt
from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted
from webhooks.authentication import authentication_schemes

_RESERVED = CONNECTION_HEADERS | {"webhook-id", "webhook-timestamp"}

MASK = "***"
#: Names whose values are masked; rather too many. Signatures are not: they do not reveal the key.
_SECRET_NAMES = re.compile(
    r"auth|cookie|secret|token|passw|passphrase|pwd|key|credential|session|bearer|jwt|\bsid\b", re.I
)
_SECRET_LENGTH = 6
_WITH_SCHEME = frozenset(("authorization", "www-authenticate", "proxy-authenticate"))


def is_secret_name(name: str) -> bool:
    """Whether a value with this name is masked."""
    return _SECRET_NAMES.search(name) is not None


def is_reserved(name: str) -> bool:
    """Whether the sender, the connection or an authentication scheme sets the header, so that a template may not."""
    lowered = name.lower()
    return lowered in _RESERVED or any(lowered in scheme.reserved_headers for scheme in authentication_schemes)


def header_lines(text: str | None) -> Iterator[Header]:
    """The headers of a template, one `Name: value` a line, empty lines left out. Raises InvalidHeader."""
    for number, line in enumerate((text or "").replace("\r\n", "\n").split("\n"), 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise InvalidHeader(Message("line {0} of the headers has no colon", number))
        if not is_header_name(name):
            raise InvalidHeader(Message("line {0} of the headers: {1} is not a header name", number, quoted(name)))
        if is_reserved(name):
            raise InvalidHeader(Message("line {0} of the headers: {1} is set by the platform", number, name))
        check_value(name, value)
        yield name, value.strip()


def value_of(headers: Iterable[Header], name: str) -> str | None:
    """The first value of a header, in any case."""
    return next((value for key, value in headers if key.lower() == name.lower()), None)


def with_trace(headers: tuple[Header, ...], traceparent: str) -> tuple[Header, ...]:
    """Add the trace headers of the causing request, unless the template sets them (W3C Trace Context)."""
    if not traceparent or value_of(headers, "traceparent") is not None:
        return headers
    return (*headers, ("traceparent", traceparent))


def masked(headers: Iterable[Header]) -> list[Header]:
    """The headers with likely secrets masked; an authorization's scheme stays, for diagnosis."""
    return [(name, _masked_value(name, value)) for name, value in headers]


def _masked_value(name: str, value: str) -> str:
    if not is_secret_name(name) or not value:
        return value
    scheme, space, _ = value.partition(" ")
    return f"{scheme} {MASK}" if space and name.lower() in _WITH_SCHEME else MASK


def opened_headers(stored: list[list[Any]] | str) -> tuple[tuple[Header, ...], str]:
    """(headers as they are sent, "") from WebHookDelivery.headers; ((), reason) if some cannot be decrypted."""
    if isinstance(stored, str):
        return (), stored
    opened = tuple((name, decrypt(value) if encrypted else value) for name, value, *encrypted in stored)
    reason = next((value.reason for _name, value in opened if isinstance(value, Unreadable)), "")
    return ((), reason) if reason else (opened, "")


def secrets_of(headers: Iterable[Header]) -> list[str]:
    """Values that are masked, and the credentials after the scheme of an Authorization header."""
    result = [value for name, value in headers if is_secret_name(name)]
    result += [rest for value in result if (rest := value.partition(" ")[2])]
    # Shorter values occur in too many words.
    return sorted({value for value in result if len(value) >= _SECRET_LENGTH}, key=len, reverse=True)


def header_text(headers: Iterable[Header]) -> str:
    """One header a line."""
    return "\n".join(f"{name}: {value}" for name, value in headers)


def masked_lines(text: str | None) -> str:
    """The lines of a template with secrets masked; an invalid line stays, so that it can be corrected."""
    return "\n".join(_masked_line(line) for line in (text or "").splitlines())


def unmasked_lines(given: str | None, original: str | None) -> str | None:
    """Edited lines, with the original values in place of unchanged masks."""
    if not given or not original:
        return given
    hidden: dict[str, list[str]] = {}
    for line in original.splitlines():
        hidden.setdefault(_masked_line(line), []).append(line)
    return "\n".join(
        result.pop(0) if (result := hidden.get(line)) and MASK in line else line for line in given.splitlines()
    )


def _masked_line(line: str) -> str:
    name, colon, value = line.partition(":")
    return f"{name}: {_masked_value(name, value.strip())}" if colon else line


__all__ = [
    "Header", "InvalidHeader", "check_value", "header_lines", "header_text", "is_secret_name", "masked", "masked_lines",
    "opened_headers", "secrets_of", "unmasked_lines", "value_of", "with_trace",
]  # fmt: skip
