"""A cache of rows of reference data: currencies, units, document types and such.

Nearly every write reads some, and they change seldom. A commit that changes reference data bumps its cache version, so
the cached rows are valid as long as cache versions are (foundation.cache_versions): a write has the rows as of the
start of its database transaction or later. Rows of other data are read anew each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from domain.dataset.tables.row_storage import Row
from domain.model.reference_data import CACHE_VERSION
from domain.model.registry import cache_version_of, repositories
from domain.model.repository import Repository
from foundation.versioned_cache import VersionedCache

#: Maximum of cached results, each of few and short rows for few keys, so that callers cannot fill the memory.
_CACHED: Final = 1000
_KEYS: Final = 20
_ROWS: Final = 20
_CHARACTERS: Final = 10_000

Rows = dict[str, Row]

#: (repository, key of the query) → its rows
_cache: VersionedCache[dict[Hashable, Rows]] = VersionedCache(
    dict, CACHE_VERSION, state=lambda: repositories.generation
)


class _Bypass(threading.local):
    """Whether this thread's transaction has rows that are rolled back later."""

    is_on = False


_bypass = _Bypass()


@contextmanager
def bypassed() -> Iterator[None]:
    """Within the block, read rows from the database: it has rows that are rolled back without a bump."""
    before, _bypass.is_on = _bypass.is_on, True
    try:
        yield
    finally:
        _bypass.is_on = before


def read(repository: Repository[Any], key: tuple[Hashable, ...], fetch: Callable[[], Rows], *, fresh: bool) -> Rows:
    """The rows that `fetch` reads from the repository; those of reference data may come from the cache.

    key     identifies the query among those of the repository; one of more than _KEYS items is not cached
    fresh   read them from the database: this transaction has written rows, and not yet bumped the cache version
    The caller may change the values.
    """
    if fresh or _bypass.is_on or len(key) > _KEYS or cache_version_of(repository) != CACHE_VERSION:
        return fetch()
    cached = _cache.get()  # before the query: rows that change meanwhile belong to another cache version
    key = repository.name, *key
    rows = cached.get(key)
    if rows is None:
        rows = fetch()
        if not _are_small(rows):
            return rows
        if len(cached) >= _CACHED:
            cached.clear()
        cached[key] = rows
    return {id: Row(dict(row.values), row.version, row.custom) for id, row in rows.items()}


def forget() -> None:
    """Empty the cache."""
    _cache.forget()


def _are_small(rows: Rows) -> bool:
    """Whether the rows are few and short; an empty result is not cached, since a caller may ask for any key."""
    if not 0 < len(rows) <= _ROWS:
        return False
    values = (value for row in rows.values() for value in (*row.values.values(), row.custom))
    # Pictures are bytes; their text would be four times as long, and built at each read, since they are not cached.
    return sum(len(value if isinstance(value, str | bytes) else str(value)) for value in values) <= _CHARACTERS
