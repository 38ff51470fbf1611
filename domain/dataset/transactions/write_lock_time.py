"""Limits the time for which one caller holds SQLite's write lock without a right to change data.

A request with an idempotency key, a dry run, a Domain transaction and a change set hold the lock of the only writer
while they work. Two kinds of work in them need no right to any data, so a caller could block all other writers and
sign-ins by it: scripts of any caller, and every request of a caller who may change nothing, such as an import whose
objects are all refused. So a caller has a token bucket of BURST_SECONDS in each process, refilled by SHARE per second.
PostgreSQL locks rows and does not need this.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from domain.database import time_limit
from domain.dataset.checks.access import allowed
from domain.dataset.tables.write_transaction import holds_write_lock
from domain.model.registry import repositories
from foundation import errors
from identity.context import CallContext
from identity.lru import GenerationalCache

#: Maximum continuous time; SQLite's writers give up after twenty seconds.
BURST_SECONDS: Final = 2.0
#: Share of the time for each process: two web processes leave others half of it.
SHARE: Final = 0.25
#: Time of each script or request that is not counted: as much as another write takes.
_UNCOUNTED_SECONDS: Final = 0.01
#: A script or request with less time left is refused.
_MIN_SECONDS: Final = 0.1


class _Limit(threading.local):
    """When the time of this thread's `limited` block ends (monotonic clock); None outside of one."""

    ends_at: float | None = None


_lock = threading.Lock()
_limit = _Limit()
#: Guid of a user → time (monotonic clock) at which all of BURST_SECONDS are restored
_restored: GenerationalCache[str, float] = GenerationalCache(2048)


def seconds_left(context: CallContext) -> float:
    """Seconds that a script of the caller may run now; infinity if it does not hold the write lock.

    Raises TooManyRequests if the time is used up.
    """
    if context.user is None or not holds_write_lock():
        return math.inf
    return _seconds_left(context.user.id)


def spend(context: CallContext, seconds: float) -> None:
    """Count the time of a caller's script. A `limited` block counts all of its time itself."""
    if context.user is not None and holds_write_lock() and _limit.ends_at is None:
        _spend(context.user.id, seconds)


@contextmanager
def limited(context: CallContext, *, is_held: bool = False) -> Iterator[None]:
    """Limit and count the time of the block, if it holds the write lock and the caller may change no data.

    is_held   the lock is held in another way than by `write_transaction`
    Raises TooManyRequests if the time is used up. Long work in the block calls `check_time`; queries end by themselves.
    """
    held = is_held or holds_write_lock()
    if context.user is None or not held or _limit.ends_at is not None or _may_change_data(context):
        yield
        return
    began = time.monotonic()
    _limit.ends_at = began + _seconds_left(context.user.id)
    try:
        with time_limit.until(_limit.ends_at):
            yield
    finally:
        _limit.ends_at = None
        _spend(context.user.id, time.monotonic() - began)


def check_time() -> None:
    """Raise TooManyRequests if the time of the `limited` block around this is over."""
    if _limit.ends_at is not None and time.monotonic() > _limit.ends_at:
        raise _used_up(0.0)


def _may_change_data(context: CallContext) -> bool:
    return any(
        repository.access != "ReadOnly"
        and any(allowed(context, repository, operation) for operation in ("create", "update", "delete"))
        for repository in repositories
    )


def _seconds_left(user: str) -> float:
    now = time.monotonic()
    left = BURST_SECONDS - _owed(user, now) if _limit.ends_at is None else _limit.ends_at - now
    if left < _MIN_SECONDS:
        raise _used_up(left)
    return left


def _used_up(left: float) -> errors.TooManyRequests:
    wait = math.ceil((_MIN_SECONDS - left) / SHARE)
    return errors.TooManyRequests(wait, retry_after_seconds=wait, code=errors.SCRIPT_TIME_USED_UP)


def _spend(user: str, seconds: float) -> None:
    if seconds <= _UNCOUNTED_SECONDS:
        return
    with _lock:
        now = time.monotonic()
        _restored.put(user, now + (_owed(user, now) + seconds - _UNCOUNTED_SECONDS) / SHARE)


def _owed(user: str, now: float) -> float:
    """Seconds of the user's time that are not restored yet."""
    return max(0.0, (_restored.get(user) or now) - now) * SHARE
