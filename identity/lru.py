"""A bounded in-process cache for hot paths, without locks."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class GenerationalCache(Generic[Key, Value]):
    """Cache of recently used entries: at most 2 × `size` in two generations.

    A full young generation becomes the old one, and used entries of the old one move back: an approximation of
    LRU whose hit is one dict lookup. Single dict operations are atomic, so threads need no lock; a lost entry is
    computed again.
    """

    __slots__ = ("_old", "_young", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        result = self._young.get(key)
        if result is None:
            result = self._old.get(key)
            if result is not None:
                self.put(key, result)
        return result

    def put(self, key: Key, value: Value) -> None:
        if len(self._young) >= self.size:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def drop(self, key: Key) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        self._young, self._old = {}, {}
