"""Checks of request headers that users write: names that the sender sets, and characters that no value may have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from foundation.messages import TranslatableMessage as Message
from foundation.messages import quoted

Header = tuple[str, str]

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110, 5.6.2
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
#: Connection management and framing (RFC 9110, 7.6.1; RFC 9112, 6) belong to the sender.
CONNECTION_HEADERS = frozenset(
    (
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
        "transfer-encoding", "upgrade", "expect", "host", "content-length",
    )
)  # fmt: skip


class InvalidHeader(ValueError):
    """A header that cannot be sent; the text says why."""


def check_headers(headers: Iterable[Header]) -> None:
    """Refuse headers that a user's request must not have. Raises InvalidHeader."""
    for name, value in headers:
        if not is_header_name(name):
            raise InvalidHeader(Message("{0} is not a header name", quoted(name)))
        if name.lower() in CONNECTION_HEADERS:
            raise InvalidHeader(Message("the header {0} is set by the platform", name))
        check_value(name, value)


def is_header_name(name: str) -> bool:
    """Whether it is a token (RFC 9110, 5.6.2)."""
    return _TOKEN.fullmatch(name) is not None


def check_value(name: str, value: str) -> None:
    """Refuse control characters, which could end the header (RFC 9110, 5.5). Raises InvalidHeader."""
    if _CONTROL.search(value):
        raise InvalidHeader(Message("the header {0} holds a line break or control character", name))
