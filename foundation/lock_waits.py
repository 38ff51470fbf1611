"""Notes beside a request's own work do not wait for SQLite's lock, which one long transaction may hold for minutes.

A read notes that its session was used, and writes rows about earlier requests. It must be answered all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection

#: Most short transactions have ended after this time.
_MILLISECONDS = 50


@contextmanager
def hardly_waiting() -> Iterator[None]:
    """Within it, a statement that SQLite's lock delays raises OperationalError after _MILLISECONDS.

    Within a transaction, and on PostgreSQL, whose locks are of rows, everything is as without it.
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
    """Whether SQLite's lock was not free in time."""
    return isinstance(error, OperationalError) and "locked" in str(error)
