"""No query holds its process for longer than settings.QUERY_SECONDS, however it is put together.

SQLite looks at the clock while it computes (a progress handler of the connection); PostgreSQL has a setting, which the
web processes give to their connections (platform_site.wsgi) and migrations do not.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper

#: How sqlite3 tells of an exception in a function of ours.
_FUNCTION_FAILED = "user-defined function raised exception"
#: Instructions of SQLite's virtual machine between two looks at the clock: some tens of milliseconds.
_STEPS = 2_000_000


class QueryTooLong(Exception):
    """The query's time is over. Raised by functions of ours, within SQLite; see was_exceeded."""


class _Deadline(threading.local):
    at = float("inf")


_deadline = _Deadline()


def watch(raw: Any) -> None:
    """Let a connection of sqlite3 heed the deadline of the thread that uses it."""
    raw.set_progress_handler(_is_over, _STEPS)


def begin() -> None:
    """What this thread asks SQLite from now on is interrupted when its time is over."""
    _deadline.at = time.monotonic() + settings.QUERY_SECONDS


def end() -> None:
    """Takes the limit away."""
    _deadline.at = float("inf")


def check() -> None:
    """Raise QueryTooLong when the time is over: for functions of ours, between whose calls SQLite looks at no clock."""
    if _is_over():
        raise QueryTooLong


def limit_connection(connection: BaseDatabaseWrapper, **signal: Any) -> None:
    """Receiver of connection_created: PostgreSQL stops every statement of the connection that takes longer.

    One that waits for what somebody else has locked is stopped before, and told as a database that is busy.
    """
    if connection.vendor == "postgresql":
        milliseconds = round(settings.QUERY_SECONDS * 1000)
        with connection.cursor() as cursor:
            cursor.execute(f"SET statement_timeout = {milliseconds}; SET lock_timeout = {milliseconds * 2 // 3}")


def was_exceeded(error: Exception) -> bool:
    """Whether a database's operational error says that a query was stopped for its time."""
    text = str(error)
    return text == "interrupted" or "statement timeout" in text or (text == _FUNCTION_FAILED and _is_over())


def _is_over() -> bool:
    return time.monotonic() > _deadline.at
