"""Patterns whose only wildcard stands for any characters, matched in one pass.

Not as regular expressions: one with many `.*` takes hours over a text that somebody has chosen for it.
"""

from __future__ import annotations

from collections.abc import Sequence


def matches(parts: Sequence[str], text: str) -> bool:
    """Whether the whole text is the parts, one after the other, with anything (nothing, too) between two of them.

    Each part is looked for once, from left to right, where it is first found.
    """
    first, *rest = parts
    if not rest:
        return text == first
    *middle, last = rest
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
