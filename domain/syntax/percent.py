"""Decodes percent-encoded text, after a URL has been split (Part 2, section 2)."""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from domain.syntax.errors import ODataSyntaxError
from foundation.messages import TranslatableMessage as Message

_BROKEN: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_COLON: Final = "(?::|%3A)"
#: A time of day in a date-time, and the "+" before its distance from UTC. No form means a space there.
_SIGN_OF_ZONE: Final = re.compile(
    rf"(T[0-9]{{2}}{_COLON}[0-9]{{2}}(?:{_COLON}[0-9]{{2}}(?:\.[0-9]{{1,12}})?)?)\+(?=[0-9]{{2}}{_COLON}[0-9]{{2}})",
    re.IGNORECASE,
)


def percent_decode(raw: str, *, plus_is_space: bool = False) -> str:
    """The decoded text: every ``%XX`` replaced, the bytes read as UTF-8.

    ``+`` stays ``+``, as it is the sign of a number or of a time zone, unless plus_is_space is set (``without_plus``).
    NUL is refused, because no database stores it.
    """
    if plus_is_space:
        raw = without_plus(raw)
    text = raw if raw.isascii() and "%" not in raw else _decoded(raw)
    if "\x00" in text:
        raise ODataSyntaxError(Message("The character NUL is not allowed."), text, text.index("\x00"))
    return text


def without_plus(raw: str) -> str:
    """The query string with ``%20`` for each ``+``, as HTML forms mean it, and ``%2B`` for that of ``T10:00+02:00``."""
    return _SIGN_OF_ZONE.sub(r"\1%2B", raw).replace("+", "%20") if "+" in raw else raw


def _decoded(raw: str) -> str:
    broken = _BROKEN.search(raw)
    if broken is not None:
        raise ODataSyntaxError(
            Message("A percent sign must be followed by two hexadecimal digits; itself it is written %25."),
            raw,
            broken.start(),
            ("two hexadecimal digits",),
        )
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError as error:
        raise ODataSyntaxError(Message("The percent-encoded bytes are not UTF-8."), raw, raw.index("%")) from error
    except UnicodeEncodeError as error:
        raise ODataSyntaxError(Message("The text holds half of a surrogate pair."), raw, error.start) from error
