"""A cached value that is rebuilt when a version stamp of its source data changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from foundation import stamps

T = TypeVar("T")


class StampedCache(Generic[T]):
    """The result of `load`. Valid while the stamps and `state()` are unchanged; a warm `get` makes no query.

    stamp_names   names in foundation.stamps
    state         what else the value depends on, such as the registry's generation

    The value is replaced as a whole, so a thread that uses the old value keeps a consistent one. Two threads may load
    at the same time; the later result stays.
    """

    def __init__(self, load: Callable[[], T], *stamp_names: str, state: Callable[[], Hashable] = tuple) -> None:
        self._load = load
        self._stamp_names = stamp_names
        self._state = state
        self._known: tuple[Hashable, T] | None = None

    def get(self) -> T:
        """The value as of the current stamps."""
        state = (*map(stamps.current, self._stamp_names), self._state())
        known = self._known
        if known is None or known[0] != state:
            known = self._known = (state, self._load())
        return known[1]

    def forget(self) -> None:
        self._known = None
