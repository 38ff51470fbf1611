"""Replacement in a text with a limited result: nested replacements could grow without bound."""

from __future__ import annotations

from typing import Final

#: Maximum characters of a result.
MAX_REPLACED: Final = 1_000_000


def replaced(text: str | None, term: str | None, by: str | None) -> str | None:
    """The text with `by` in place of each `term`; null if one of them is null.

    Raises OverflowError beyond MAX_REPLACED; SQLite reports it as it does a too long text.
    """
    if text is None or term is None or by is None:
        return None
    if not term:
        return text
    if len(by) > len(term) and len(text) + text.count(term) * (len(by) - len(term)) > MAX_REPLACED:
        raise OverflowError("string or blob too big")
    return text.replace(term, by)
