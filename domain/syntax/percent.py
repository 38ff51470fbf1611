"""Decodes percent-encoded text, after a URL has been split (Part 2, section 2)."""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from domain.syntax.errors import ODataSyntaxError
from foundation.messages import TranslatableMessage as Message

_BROKEN: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def percent_decode(raw: str, *, plus_is_space: bool = False) -> str:
    """The decoded text: every ``%XX`` replaced, the bytes read as UTF-8.

    ``+`` stays ``+``, as it is the sign of a number or of a time zone, unless plus_is_space is set, as in HTML forms.
    NUL is refused, because no database stores it.
    """
    if plus_is_space:
        raw = raw.replace("+", " ")
    text = raw if raw.isascii() and "%" not in raw else _decoded(raw)
    if "\x00" in text:
        raise ODataSyntaxError(Message("The character NUL is not allowed."), text, text.index("\x00"))
    return text


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
