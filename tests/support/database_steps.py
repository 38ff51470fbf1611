"""How much work a database has: what grows with rows that a request does not concern is found without a clock."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection

from domain.database import time_limit

#: Steps of SQLite's virtual machine between two looks.
_BETWEEN = 10


def sqlite_steps(work: Callable[[], object]) -> int:
    """Steps of SQLite's virtual machine that the work takes, to the nearest ten of each statement."""
    connection.ensure_connection()
    looks = 0

    def look() -> int:
        nonlocal looks
        looks += 1
        return 0

    connection.connection.set_progress_handler(look, _BETWEEN)
    try:
        work()
    finally:
        time_limit.watch(connection.connection)
    return looks * _BETWEEN
