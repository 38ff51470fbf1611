"""Header lines of templates: how they are read, which names are not a template's to set, what is masked when shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from foundation.egress.headers import CONNECTION_HEADERS, Header, InvalidHeader, check_value, is_header_name
from foundation.phrases import Phrase, quoted
from foundation.vault import Unreadable, unseal

#: The headers of Standard Webhooks are the sender's, as those of the connection.
RESERVED = CONNECTION_HEADERS | {"webhook-id", "webhook-timestamp", "webhook-signature"}

MASK = "***"
#: Rather a harmless value masked than a secret shown. Signatures are none: what they sign with is not told by them.
_SECRET_NAMES = re.compile(
    r"auth|cookie|secret|token|passw|passphrase|pwd|key|credential|session|bearer|jwt|\bsid\b", re.I
)
_SECRET_LENGTH = 6
_WITH_SCHEME = frozenset(("authorization", "www-authenticate", "proxy-authenticate"))


def is_secret_name(name: str) -> bool:
    """Whether the value of something that is called so is hidden where it is shown."""
    return _SECRET_NAMES.search(name) is not None


def header_lines(text: str | None) -> Iterator[Header]:
    """The headers of a template, one `Name: value` a line, empty lines left out. Raises InvalidHeader."""
    for number, line in enumerate((text or "").replace("\r\n", "\n").split("\n"), 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise InvalidHeader(Phrase("line {0} of the headers has no colon", number))
        if not is_header_name(name):
            raise InvalidHeader(Phrase("line {0} of the headers: {1} is not a header name", number, quoted(name)))
        if name.lower() in RESERVED:
            raise InvalidHeader(Phrase("line {0} of the headers: {1} is set by the platform", number, name))
        check_value(name, value)
        yield name, value.strip()


def value_of(headers: Iterable[Header], name: str) -> str | None:
    """The first value of a header, in any case."""
    return next((value for key, value in headers if key.lower() == name.lower()), None)


def with_trace(headers: tuple[Header, ...], traceparent: str) -> tuple[Header, ...]:
    """The headers with the trace of the request that caused them, unless they say another (W3C Trace Context)."""
    if not traceparent or value_of(headers, "traceparent") is not None:
        return headers
    return (*headers, ("traceparent", traceparent))


def masked(headers: Iterable[Header]) -> list[Header]:
    """As sent, but for values that smell of a secret; an authorization's scheme stays, for it helps to find faults."""
    return [(name, _masked_value(name, value)) for name, value in headers]


def _masked_value(name: str, value: str) -> str:
    if not is_secret_name(name) or not value:
        return value
    scheme, space, _ = value.partition(" ")
    return f"{scheme} {MASK}" if space and name.lower() in _WITH_SCHEME else MASK


def opened_headers(stored: list[list[Any]] | str) -> tuple[tuple[Header, ...], str]:
    """(headers as they are sent, "") of what WebHookDelivery.headers holds; ((), reason) where some are unreadable."""
    if isinstance(stored, str):
        return (), stored
    opened = tuple((name, unseal(value) if sealed else value) for name, value, *sealed in stored)
    reason = next((value.reason for _name, value in opened if isinstance(value, Unreadable)), "")
    return ((), reason) if reason else (opened, "")


def secrets_of(headers: Iterable[Header]) -> list[str]:
    """Values that are hidden where they are shown, and what follows the scheme of an authorization."""
    found = [value for name, value in headers if is_secret_name(name)]
    found += [rest for value in found if (rest := value.partition(" ")[2])]
    # Shorter ones are part of too many words.
    return sorted({value for value in found if len(value) >= _SECRET_LENGTH}, key=len, reverse=True)


def header_text(headers: Iterable[Header]) -> str:
    """One header a line."""
    return "\n".join(f"{name}: {value}" for name, value in headers)


def masked_lines(text: str | None) -> str:
    """The lines of a template with secrets masked; what is no header line stays, for it is to be corrected."""
    return "\n".join(_masked_line(line) for line in (text or "").splitlines())


def unmasked_lines(given: str | None, original: str | None) -> str | None:
    """Lines as a person left them, where those that are still as `masked_lines` showed them get their values back."""
    if not given or not original:
        return given
    hidden: dict[str, list[str]] = {}
    for line in original.splitlines():
        hidden.setdefault(_masked_line(line), []).append(line)
    return "\n".join(
        found.pop(0) if (found := hidden.get(line)) and MASK in line else line for line in given.splitlines()
    )


def _masked_line(line: str) -> str:
    name, colon, value = line.partition(":")
    return f"{name}: {_masked_value(name, value.strip())}" if colon else line


__all__ = [
    "Header", "InvalidHeader", "check_value", "header_lines", "header_text", "is_secret_name", "masked", "masked_lines",
    "opened_headers", "secrets_of", "unmasked_lines", "value_of", "with_trace",
]  # fmt: skip
