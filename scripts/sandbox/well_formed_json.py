"""Replaces lone surrogates in texts of the engine, which UTF-8 cannot encode."""

from __future__ import annotations

import re
from typing import Final

# Surrogates are escaped in JSON. The number of backslashes distinguishes an escape from the same letters in a string; a
# pair of surrogates is a valid character.
_HALF: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)(?:(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def well_formed(json_text: str) -> str:
    r"""JSON with the replacement character for lone surrogates, as JavaScript's toWellFormed.

    The engine writes them as \ud800, which orjson refuses.
    """
    if "\\ud" not in json_text and "\\uD" not in json_text:
        return json_text
    return _HALF.sub(lambda match: match[0] if match[2] else f"{match[1]}\\ufffd", json_text)
