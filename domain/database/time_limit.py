"""Limits each query to settings.QUERY_SECONDS.

On SQLite a progress handler of the connection checks the clock; on PostgreSQL the web processes set statement_timeout
for their connections (platform_site.wsgi), migrations do not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

#: sqlite3's message for an exception in one of our functions.
_FUNCTION_FAILED = "user-defined function raised exception"
#: Instructions of SQLite's virtual machine between two checks of the clock: some tens of milliseconds.
_STEPS = 2_000_000


class QueryTooLong(Exception):
    """The query's time limit is exceeded. Raised by our SQL functions for SQLite; see was_exceeded."""


class _Deadline(threading.local):
    """`at`: end of the running query's time (monotonic clock); `latest`: that of all queries of a block.

    seconds   time that the last query had
    """

    at = float("inf")
    latest = float("inf")
    seconds = 0.0


_deadline = _Deadline()


def watch(raw: Any) -> None:
    """Install the progress handler, which checks the deadline of the thread."""
    raw.set_progress_handler(_is_over, _STEPS)


def begin() -> None:
    """Start the time limit for SQLite queries of this thread."""
    now = time.monotonic()
    _deadline.at = min(now + settings.QUERY_SECONDS, _deadline.latest)
    _deadline.seconds = settings.QUERY_SECONDS if _deadline.at < _deadline.latest else round(_deadline.at - now, 1)


def seconds() -> float:
    """The time that this thread's last query had."""
    return _deadline.seconds


def end() -> None:
    """Remove the limit."""
    _deadline.at = float("inf")


@contextmanager
def until(at: float) -> Iterator[None]:
    """End SQLite queries of this thread in the block at this time of the monotonic clock, if they last so long."""
    _deadline.latest = at
    try:
        yield
    finally:
        _deadline.latest = float("inf")


def check() -> None:
    """Raise QueryTooLong if the time is over. For our SQL functions: SQLite calls no progress handler during them."""
    if _is_over():
        raise QueryTooLong


def limit_connection(connection: BaseDatabaseWrapper, **signal: Any) -> None:
    """Receiver of connection_created: sets PostgreSQL's statement_timeout and lock_timeout for the connection.

    lock_timeout is shorter, so that waiting for a lock is reported as a busy database. A transaction pooler has the
    limits in its own configuration.
    """
    if connection.vendor != "postgresql" or settings.DATABASE_TRANSACTION_POOLER:
        return
    connection.ensure_connection()  # for callers other than the signal
    milliseconds, raw = round(settings.QUERY_SECONDS * 1000), connection.connection
    if getattr(raw, "limit_milliseconds", None) == milliseconds:
        return  # a pooled connection, set by an earlier request
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = {milliseconds}; SET lock_timeout = {milliseconds * 2 // 3}")
    raw.limit_milliseconds = milliseconds


def was_exceeded(error: Exception) -> bool:
    """Whether an operational error of the database means that a query exceeded its time."""
    text = str(error)
    return text == "interrupted" or "statement timeout" in text or (text == _FUNCTION_FAILED and _is_over())


def _is_over() -> bool:
    return time.monotonic() > _deadline.at
