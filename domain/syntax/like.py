"""The patterns of `like`: % stands for any text, _ for one character, as in SQL."""

import re
from typing import Final

_ENDS: Final = {(False, False): "", (False, True): "startswith", (True, False): "endswith", (True, True): "contains"}
_WILDCARD: Final = re.compile("([%_])")
#: In a regular expression of ECMAScript; its dot does not match the end of a line.
_ANY: Final = {"%": r"[\s\S]*", "_": r"[\s\S]"}


def like_function(pattern: str) -> tuple[str, str]:
    """(function, its second argument) that hold for the same texts; the function is "" for equality.

    `A%` is startswith, which finds the rows by an index; patterns with wildcards inside are matchesPattern.
    """
    text = pattern.strip("%")
    if not _WILDCARD.search(text):
        return (_ENDS[pattern.startswith("%"), pattern.endswith("%")] if pattern != text else ""), text
    parts = (_ANY.get(part) or re.sub(r"([^\w\s])", r"\\\1", part) for part in _WILDCARD.split(pattern))
    return "matchesPattern", f"^{''.join(parts)}$"


__all__ = ["like_function"]
