"""A cached value that is rebuilt when a version stamp of its source data changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
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
        #: The stamps at the last use, what the value depends on, and the value.
        self._known: tuple[Mapping[str, int], Hashable, Hashable, T] | None = None

    def get(self) -> T:
        """The value as of the current stamps."""
        values, state = stamps.values(), self._state()
        known = self._known
        if known is not None and known[0] is values and known[2] == state:
            return known[3]
        stamped = tuple(values.get(name, 0) for name in self._stamp_names)
        if known is None or (known[1], known[2]) != (stamped, state):
            known = (values, stamped, state, self._load())
        self._known = (values, *known[1:])
        return known[3]

    def forget(self) -> None:
        self._known = None
