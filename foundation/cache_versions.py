"""Cache versions: numbers in the database whose change invalidates the caches of every process.

A cache stores the cache version of its source and compares it with `current(name)` before each use. Code that changes
the source calls `bump(name)` in the same database transaction. A committed change then takes effect

- for the next request on every process of the machine: after the commit and before the response, the process changes
  a word in a file that all processes map (foundation.shared_word). `current` reads the cache versions again when the
  word differs. Otherwise it runs no query, so the call takes well under a microsecond;
- for every write on every node whose database transaction begins later: `check` reads the cache versions at its start;
- for reads on other nodes within CHECK_SECONDS, with Redis at once (foundation.cache_version_signals). The same holds
  on the same machine if a process died between commit and announcement, or if the file cannot be written.

A transaction that has bumped a cache version sees its own values; other threads see them after its commit. The
transaction's caches are stored under these values, which no other transaction has.

Cache versions can only be compared for equality. They are timestamps, not counters: after a rollback, a counter would
give the same value to the next change, and a cache built before the rollback would miss that change.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection, transaction

from foundation.per_process import PerProcess
from foundation.shared_word import SharedWord

if TYPE_CHECKING:
    from foundation.cache_version_signals import CacheVersionSignals

#: Maximum age of the cache versions for reads, if a change on another node or an unannounced one occurs.
CHECK_SECONDS = 0.5
#: Queries for the cache versions, while those of other threads end in between with other values.
_ATTEMPTS = 5
#: In DATA_DIR.
WORD_FILE_NAME = "change_signals.bin"

# foundation.models.CacheVersion
_READ = "SELECT name, value FROM foundation_cacheversion"
_BUMP = (
    "INSERT INTO foundation_cacheversion (name, value) VALUES (%s, %s) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)

#: A statement without parameters → its rows.
Fetch = Callable[[str], list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class _Known:
    """Cache versions as one query read them.

    word         value of the shared word before the query
    expirations  value of `_expirations` before the query
    """

    word: int
    expirations: int
    values: Mapping[str, int] = field(default_factory=dict)


class _Bump:
    """A bump, and the hook that announces it after its commit."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self) -> None:
        expire()
        shared_word().write(random.getrandbits(64))
        if (pushed := signals()) is not None:
            pushed.announce()


class _Own(threading.local):
    """Bumps of this thread in its open database transaction, and the cache versions as that transaction sees them.

    held  values frozen by `held`
    """

    held: Mapping[str, int] | None = None
    bumps: tuple[_Bump, ...] = ()
    view: tuple[tuple[_Bump, ...], int, Mapping[str, int]] | None = None


_lock = threading.Lock()
_expirations = 0
_checked_at = float("-inf")
_known = _Known(0, -1)
_own = _Own()
_shared_word: SharedWord | None = None


def current(name: str) -> int:
    """The current value (see the module for its age); 0 if it was never bumped."""
    return values().get(name, 0)


def values() -> Mapping[str, int]:
    """The current values of all cache versions: the same mapping as long as the process has read no other values."""
    global _checked_at
    if _own.held is not None:
        return _own.held
    if _own.bumps and (bumps := _unfinished()):
        return _own_view(bumps)
    known = _known
    if _shared_word is None or _shared_word.word[0] != known.word or _expirations != known.expirations:
        known = _read()
    elif (now := time.monotonic()) - _checked_at >= CHECK_SECONDS:
        # Set before the query: if it fails, the next callers must not all repeat it.
        _checked_at = now
        _shared_word.remap()
        known = _read()
    return known.values


@contextmanager
def held() -> Iterator[Mapping[str, int]]:
    """Freeze the cache versions that this thread sees.

    For reads from a replica that may lag behind: a cache filled from it must not be labelled with a later version.
    """
    before, _own.held = _own.held, values()
    try:
        yield _own.held
    finally:
        _own.held = before


def bump(name: str) -> None:
    """Mark the source `name` as changed. Takes effect when the current database transaction commits."""
    # Raw SQL, as in `_read`: saves of access data and requests run these statements often.
    with connection.cursor() as cursor:
        cursor.execute(_BUMP, (name, _unused()))
    result = _Bump(name)
    if connection.in_atomic_block:
        _own.bumps = (*_unfinished(), result)
    transaction.on_commit(result)


def is_bumped(name: str) -> bool:
    """Whether the open database transaction of this thread has changed the source `name`."""
    return bool(_own.bumps) and any(each.name == name for each in _unfinished())


def check(fetch: Fetch | None = None) -> None:
    """Read the cache versions now. Writes call this when their transaction begins, to see every earlier commit.

    fetch: runs the query, for callers with a faster way than Django's cursor.
    """
    if _own.held is None and not (_own.bumps and _unfinished()):
        _read(fetch)


def expire() -> None:
    """Make the next `current` query the database."""
    global _expirations
    with _lock:
        _expirations += 1


def shared_word() -> SharedWord:
    """The word that the processes of this machine share."""
    global _shared_word
    if _shared_word is None:
        _shared_word = SharedWord(settings.DATA_DIR / WORD_FILE_NAME)
    return _shared_word


@PerProcess
def signals() -> CacheVersionSignals | None:
    """Announces changes between nodes; the first call starts listening. None without Redis."""
    if not settings.REDIS_URL:
        return None
    from foundation.cache_version_signals import CacheVersionSignals  # the Redis client is slow to import

    # Instances may share a Redis; each has its own database.
    channel = f"cache-versions:{connection.settings_dict.get('HOST')}:{connection.settings_dict['NAME']}"
    return CacheVersionSignals(settings.REDIS_URL, channel, expire)


def _unused() -> int:
    """A new value: the time in nanoseconds. The ten random low bits keep the values of two nodes apart."""
    return time.time_ns() & ~1023 | random.getrandbits(10)


def _read(fetch: Fetch | None = None) -> _Known:
    """Read the cache versions for the whole process. A transaction that has bumped uses `_own_view` instead."""
    global _known, _checked_at
    signals()  # must listen before the query
    for _ in range(_ATTEMPTS):
        # All read before the query, so that the next caller notices a change made during it.
        before, word, expirations, now = _known, shared_word().word[0], _expirations, time.monotonic()
        read: Mapping[str, int] = dict((fetch or _fetch)(_READ))
        with _lock:
            values = _known.values if read == _known.values else read
            if _known is before:
                _known = _Known(word, expirations, values)
                _checked_at = now
                return _known
            if values is _known.values:
                return _known
        # Another thread's query ended during this one and has other values: which are newer is unknown.
    return _known


def _fetch(text: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _unfinished() -> tuple[_Bump, ...]:
    """Bumps of this thread whose transaction is neither committed nor rolled back: Django still holds their hooks."""
    waiting = {id(hook) for _, hook, *_ in connection.run_on_commit}
    bumps = tuple(made for made in _own.bumps if id(made) in waiting)
    if len(bumps) != len(_own.bumps):
        _own.bumps, _own.view = bumps, None
        # Hooks of the same commit may run before those of the bumps, and must see what it has changed.
        expire()
    return _own.bumps


def _own_view(bumps: tuple[_Bump, ...]) -> Mapping[str, int]:
    """The cache versions as this thread's transaction sees them; cached until the next bump or expiration."""
    view = _own.view
    if view is None or view[0] is not bumps or view[1] != _expirations:
        view = _own.view = (bumps, _expirations, dict(_fetch(_READ)))
    return view[2]
