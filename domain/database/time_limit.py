"""Limits each query to settings.QUERY_SECONDS.

SQLite checks the clock while it computes (a progress handler of the connection); PostgreSQL has a setting, which the
web processes set for their connections (platform_site.wsgi) and migrations do not.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

#: sqlite3's message for an exception in one of our functions.
_FUNCTION_FAILED = "user-defined function raised exception"
#: Instructions of SQLite's virtual machine between two checks of the clock: some tens of milliseconds.
_STEPS = 2_000_000


class QueryTooLong(Exception):
    """The query's time is over. Raised by our functions within SQLite; see was_exceeded."""


class _Deadline(threading.local):
    at = float("inf")


_deadline = _Deadline()


def watch(raw: Any) -> None:
    """Install the progress handler, which checks the deadline of the thread."""
    raw.set_progress_handler(_is_over, _STEPS)


def begin() -> None:
    """Start the time limit for SQLite queries of this thread."""
    _deadline.at = time.monotonic() + settings.QUERY_SECONDS


def end() -> None:
    """Remove the limit."""
    _deadline.at = float("inf")


def check() -> None:
    """Raise QueryTooLong if the time is over: for our SQL functions, during which SQLite does not check the clock."""
    if _is_over():
        raise QueryTooLong


def limit_connection(connection: BaseDatabaseWrapper, **signal: Any) -> None:
    """Receiver of connection_created: PostgreSQL cancels every statement of the connection that takes longer.

    A statement that waits for a lock is cancelled earlier, and reported as a busy database. A pooler in transaction
    mode has the limit in its own configuration.
    """
    if connection.vendor != "postgresql" or settings.DATABASE_TRANSACTION_POOLER:
        return
    connection.ensure_connection()  # for callers other than the signal
    milliseconds, raw = round(settings.QUERY_SECONDS * 1000), connection.connection
    if getattr(raw, "limit_milliseconds", None) == milliseconds:
        return  # a connection of the pool, which has it from an earlier request
    with connection.cursor() as cursor:
        cursor.execute(f"SET statement_timeout = {milliseconds}; SET lock_timeout = {milliseconds * 2 // 3}")
    raw.limit_milliseconds = milliseconds


def was_exceeded(error: Exception) -> bool:
    """Whether an operational error of the database means that a query exceeded its time."""
    text = str(error)
    return text == "interrupted" or "statement timeout" in text or (text == _FUNCTION_FAILED and _is_over())


def _is_over() -> bool:
    return time.monotonic() > _deadline.at
