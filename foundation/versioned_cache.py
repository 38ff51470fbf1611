"""A cached value that is rebuilt when a cache version of its source data changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

from foundation import cache_versions

T = TypeVar("T")


class VersionedCache(Generic[T]):
    """The result of `load`. Valid while the cache versions and `state()` are unchanged; a warm `get` makes no query.

    cache_version_names   names in foundation.cache_versions
    state         what else the value depends on, such as the registry's generation

    The value is replaced as a whole, so a thread that uses the old value keeps a consistent one. Two threads may load
    at the same time; the later result stays.
    """

    def __init__(self, load: Callable[[], T], *cache_version_names: str, state: Callable[[], Hashable] = tuple) -> None:
        self._load = load
        self._cache_version_names = cache_version_names
        self._state = state
        #: The cache versions at the last use, what the value depends on, and the value.
        self._known: tuple[Mapping[str, int], Hashable, Hashable, T] | None = None

    def get(self) -> T:
        """The value as of the current cache versions."""
        values, state = cache_versions.values(), self._state()
        known = self._known
        if known is not None and known[0] is values and known[2] == state:
            return known[3]
        versions = tuple(values.get(name, 0) for name in self._cache_version_names)
        if known is None or (known[1], known[2]) != (versions, state):
            known = (values, versions, state, self._load())
        self._known = (values, *known[1:])
        return known[3]

    def forget(self) -> None:
        self._known = None
