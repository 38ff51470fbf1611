"""A bounded in-process cache for hot paths: no lock, no bookkeeping on a hit."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class GenerationalCache(Generic[Key, Value]):
    """Keeps what was used lately: at most 2 × `size` entries in two generations.

    A full young generation becomes the old one, and what is found there moves back: an approximation of LRU whose hit
    is one dict lookup. Single dict operations are atomic, so threads need no lock; a lost entry is merely computed
    again.
    """

    __slots__ = ("_old", "_young", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        """The entry, or None."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: Key, value: Value) -> None:
        """Keep the entry."""
        if len(self._young) >= self.size:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def drop(self, key: Key) -> None:
        """Forget the entry."""
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        self._young, self._old = {}, {}
