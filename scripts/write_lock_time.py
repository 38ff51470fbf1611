"""Limits the time for which scripts of one caller hold SQLite's write lock.

A request with an idempotency key, a dry run, a Domain transaction and a change set hold the lock of the only writer
while their scripts run. Such a script needs no right to any data, so its caller could block all other writers and
sign-ins. So a caller has a token bucket of BURST_SECONDS in each process, refilled by SHARE per second. PostgreSQL
locks rows and does not need this.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Final

from domain.dataset.tables.write_transaction import holds_write_lock
from foundation import errors
from identity.context import CallContext
from identity.lru import GenerationalCache

#: Maximum continuous time; SQLite's writers give up after twenty seconds.
BURST_SECONDS: Final = 2.0
#: Share of the time for each process: two web processes leave others half of it.
SHARE: Final = 0.25
#: Time of each script that is not counted: as much as another write takes.
_UNCOUNTED_SECONDS: Final = 0.01
#: A script with less time left is refused.
_MIN_SECONDS: Final = 0.1

_lock = threading.Lock()
#: Guid of a user → time (monotonic clock) at which all of BURST_SECONDS are restored
_restored: GenerationalCache[str, float] = GenerationalCache(2048)


def seconds_left(context: CallContext) -> float:
    """Seconds that a script of the caller may run now; infinity if it does not hold the write lock.

    Raises TooManyRequests if the time is used up.
    """
    if context.user is None or not holds_write_lock():
        return math.inf
    left = BURST_SECONDS - _owed(context.user.id, time.monotonic())
    if left < _MIN_SECONDS:
        wait = math.ceil((_MIN_SECONDS - left) / SHARE)
        raise errors.TooManyRequests(wait, retry_after_seconds=wait, code=errors.SCRIPT_TIME_USED_UP)
    return left


def spend(context: CallContext, seconds: float) -> None:
    """Count the time of a caller's script."""
    if context.user is None or not holds_write_lock() or seconds <= _UNCOUNTED_SECONDS:
        return
    with _lock:
        now, user = time.monotonic(), context.user.id
        _restored.put(user, now + (_owed(user, now) + seconds - _UNCOUNTED_SECONDS) / SHARE)


def _owed(user: str, now: float) -> float:
    """Seconds of the user's time that are not restored yet."""
    return max(0.0, (_restored.get(user) or now) - now) * SHARE
