"""Texts on their way out of the engine, whose strings may hold half of a character, into UTF-8, which cannot."""

from __future__ import annotations

import re
from typing import Final

# The halves are of a character's UTF-16 form, and come as escapes. The backslashes before tell an escape from the same
# letters in a string; two halves that belong together are a character like any other.
_HALF: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)(?:(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def well_formed(json_text: str) -> str:
    r"""JSON with the replacement character for halves of characters, as JavaScript's own toWellFormed has it.

    The engine writes them as \ud800, which no reader of JSON on our side takes.
    """
    if "\\ud" not in json_text and "\\uD" not in json_text:
        return json_text
    return _HALF.sub(lambda found: found[0] if found[2] else f"{found[1]}\\ufffd", json_text)
