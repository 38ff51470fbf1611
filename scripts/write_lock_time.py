"""Bounds the time for which scripts of one caller keep SQLite's write lock.

A request with an idempotency key, a dry run, a Domain transaction and a change set hold the lock of the only writer
while their scripts run. Such a script needs no right to any data, so its caller could stop all other writers and
sign-ins. A caller therefore has BURST_SECONDS of such time in a process, and gets SHARE of each further second back.
PostgreSQL has a lock for each row, and no need of this.
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

#: As long as others may wait for one request; SQLite's writers give up after twenty seconds.
BURST_SECONDS: Final = 2.0
#: Of the time, for each process: two web processes leave others half of it.
SHARE: Final = 0.25
#: Of each script, which is then as cheap as another write.
_FREE_SECONDS: Final = 0.01
#: Less is not worth a start.
_LEAST_SECONDS: Final = 0.1

_lock = threading.Lock()
#: Guid of a user → the time of the monotonic clock at which all of BURST_SECONDS are there again
_restored: GenerationalCache[str, float] = GenerationalCache(2048)


def seconds_left(context: CallContext) -> float:
    """How long a script that the caller has sent may run now; infinity where it keeps nobody waiting.

    Raises TooManyRequests if the time is used up.
    """
    if context.user is None or not holds_write_lock():
        return math.inf
    left = BURST_SECONDS - _owed(context.user.id, time.monotonic())
    if left < _LEAST_SECONDS:
        wait = math.ceil((_LEAST_SECONDS - left) / SHARE)
        raise errors.TooManyRequests(wait, retry_after_seconds=wait, code=errors.SCRIPT_TIME_USED_UP)
    return left


def spend(context: CallContext, seconds: float) -> None:
    """Count the time of a script that the caller has sent."""
    if context.user is None or not holds_write_lock() or seconds <= _FREE_SECONDS:
        return
    with _lock:
        now, user = time.monotonic(), context.user.id
        _restored.put(user, now + (_owed(user, now) + seconds - _FREE_SECONDS) / SHARE)


def _owed(user: str, now: float) -> float:
    """Seconds of the user's time that are not restored yet."""
    return max(0.0, (_restored.get(user) or now) - now) * SHARE
