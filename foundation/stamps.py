"""Change signals between processes (ARCHITECTURE: "Several nodes").

A cache that lives in a process keeps the stamp it was built from and asks `current(name)` before use. The answer comes
from this process's memory, refreshed from the database at most every `CHECK_SECONDS` for all names in one query. Who
changes the source calls `bump(name)` in the same database transaction; the own process sees it at once after the
commit, every other one within CHECK_SECONDS, with Redis at once (stamp_signals).

Values say "the same" or "changed", nothing more. They are moments, not counts: what one transaction bumped and rolled
back would be counted a second time, and a cache built in between would take the second change for the first.
"""

from __future__ import annotations

import os
import random
import threading
import time
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, transaction

if TYPE_CHECKING:
    from foundation.stamp_signals import StampSignals

CHECK_SECONDS = 2.0

# foundation.models.VersionStamp
_READ = "SELECT name, value FROM foundation_versionstamp"
_BUMP = (
    "INSERT INTO foundation_versionstamp (name, value) VALUES (%s, %s) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)

_lock = threading.Lock()
_signals_lock = threading.Lock()
_values: dict[str, int] = {}
_checked_at = float("-inf")
#: (process, its signals): a process that was forked has none of its parent's threads.
_signals: tuple[int, StampSignals | None] | None = None


def current(name: str) -> int:
    """The newest known value of the stamp; 0 for one that was never bumped. At most one query per CHECK_SECONDS."""
    global _checked_at
    now = time.monotonic()
    if now - _checked_at >= CHECK_SECONDS:
        with _lock:
            if now - _checked_at >= CHECK_SECONDS:
                # Set first: if the query fails, the next caller must not stampede on it.
                _checked_at = now
                _refresh()
    return _values.get(name, 0)


def bump(name: str) -> None:
    """Say that what `name` stands for has changed. Takes effect with the current database transaction."""
    # Raw, like the reading: every save of something that access depends on comes through here, every request there.
    with connection.cursor() as cursor:
        cursor.execute(_BUMP, (name, _unused()))
    transaction.on_commit(_announce)


def _announce() -> None:
    expire()
    if (pushed := signals()) is not None:
        pushed.announce()


def signals() -> StampSignals | None:
    """What pushes stamps between processes, listening from the first call on; None without Redis."""
    global _signals
    process = os.getpid()
    if _signals is None or _signals[0] != process:
        with _signals_lock:
            if _signals is None or _signals[0] != process:
                _signals = (process, _listening())
    return _signals[1]


def _listening() -> StampSignals | None:
    if not settings.REDIS_URL:
        return None
    from foundation.stamp_signals import StampSignals  # Redis' client takes its time to import

    # Instances may share a Redis; each has its own database.
    channel = f"stamps:{connection.settings_dict.get('HOST')}:{connection.settings_dict['NAME']}"
    return StampSignals(settings.REDIS_URL, channel, expire)


def _unused() -> int:
    """A value that no stamp ever had. Nanoseconds; the last ten bits by chance, for nodes whose clocks tick alike."""
    return time.time_ns() & ~1023 | random.getrandbits(10)


def expire() -> None:
    """Forget when the stamps were last read: the next `current` asks the database."""
    global _checked_at
    _checked_at = float("-inf")


def _refresh() -> None:
    signals()  # listens before the query, so that no change falls between the two
    with connection.cursor() as cursor:
        cursor.execute(_READ)
        values = dict(cursor.fetchall())
    _values.clear()
    _values.update(values)
