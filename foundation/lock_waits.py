"""Limits how long secondary writes wait for SQLite's lock, which one long transaction may hold for minutes.

A read writes, too: the last use of its session, and rows about earlier requests. It must not wait for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection

#: Most short transactions have ended after this time.
_MILLISECONDS = 50


@contextmanager
def short_lock_wait() -> Iterator[None]:
    """Statements of the block raise OperationalError after waiting _MILLISECONDS for SQLite's lock.

    Has no effect within a transaction, and on PostgreSQL, which locks rows.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    raw = connection.connection
    (usual,) = raw.execute("PRAGMA busy_timeout").fetchone()
    raw.execute(f"PRAGMA busy_timeout = {_MILLISECONDS}")
    try:
        yield
    finally:
        raw.execute(f"PRAGMA busy_timeout = {usual}")


def is_locked(error: Exception) -> bool:
    """Whether the error is a timeout of SQLite's lock."""
    return isinstance(error, OperationalError) and "locked" in str(error)
