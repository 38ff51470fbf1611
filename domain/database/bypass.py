"""Check whether a statement may go to the driver without Django's cursor.

Django's cursor for SQLite translates placeholders by a regular expression, and has four layers of Python: for a
statement that reads one row this takes longer than the database. The cursor for PostgreSQL writes parameters into the
text, so that the server parses and plans each statement anew.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

Row = tuple[Any, ...]


def prepare_bypass(connection: BaseDatabaseWrapper) -> bool:
    """Prepare to run a statement without Django's cursor; False if that is not allowed.

    It is not allowed while Django logs queries, or if an execute wrapper does more than count (`only_counts`). Counting
    wrappers count the statement. Opens a closed connection.
    """
    if connection.queries_logged:
        return False
    wrappers: list[Any] = connection.execute_wrappers
    for wrapper in wrappers:
        if not getattr(wrapper, "only_counts", False):
            return False
    if connection.connection is None:
        connection.ensure_connection()
    for wrapper in wrappers:
        wrapper.count += 1
    return True
