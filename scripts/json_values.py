"""JSON values that somebody gave: looked at in bounded time, before anything else is done with them."""

from __future__ import annotations

from typing import Any


def has_more_parts(value: Any, most: int) -> bool:
    """Whether a value has more values than that inside of it, at any depth."""
    waiting, found = [value], 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            found += len(item)
            if found > most:
                return True
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return False


def comparable(value: Any) -> Any:
    """The same for equal values and for no others, as JSON Schema has it: 1 is 1.0, and is not true. Hashable.

    Raises RecursionError for what is nested too deeply.
    """
    if isinstance(value, dict):
        return ("object", frozenset((name, comparable(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple([comparable(item) for item in value]))
    return (isinstance(value, bool), value)
