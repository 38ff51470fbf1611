"""Executes constant SQL statements without Django's cursor.

Django's cursor for SQLite translates placeholders by a regular expression, and has four layers of Python: for a
statement that reads one row this takes longer than the database. Without execute wrappers, statements go directly to
the driver's connection; errors are still Django's. Reads on PostgreSQL do the same (domain.database.postgresql).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Row = tuple[Any, ...]
_PERCENT = re.compile("%[s%]")


def fetch(text: str, parameters: Sequence[Any]) -> list[Row]:
    """Every row of a statement with %s placeholders, in the driver's form. Raises Django's database errors."""
    connection = connections["default"]
    if _is_native_sqlite(connection):
        return fetch_natively(connection, native(text), parameters)
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        rows: list[Row] = cursor.fetchall()
    return rows


def execute(text: str, parameters: Sequence[Any]) -> None:
    """As `fetch`, for a statement without result rows."""
    connection = connections["default"]
    if _is_native_sqlite(connection):
        fetch_natively(connection, native(text), parameters)
        return
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)


def execute_many(text: str, rows: Sequence[Sequence[Any]], *, connection: BaseDatabaseWrapper | None = None) -> None:
    """Execute a statement without result rows for each set of parameters.

    connection: the main database's, if the caller has it; a look-up takes a tenth of a short statement's time.
    """
    if connection is None:
        connection = connections["default"]
    if not _is_native_sqlite(connection):
        with connection.cursor() as cursor:
            cursor.executemany(text, rows)
        return
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    try:
        connection.connection.executemany(native(text), rows)
    except sqlite3.Error:
        with connection.wrap_database_errors:
            raise


def _is_native_sqlite(connection: BaseDatabaseWrapper) -> bool:
    return connection.vendor == "sqlite" and may_bypass_cursor(connection)


def may_bypass_cursor(connection: BaseDatabaseWrapper) -> bool:
    """Whether a statement may run without Django's cursor: if execute wrappers at most count.

    Wrappers that only count statements (`only_counts`) are notified. A closed connection is opened by Django.
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


def fetch_natively(connection: BaseDatabaseWrapper, native_text: str, parameters: Sequence[Any]) -> list[Row]:
    """Execute a text with SQLite's placeholders."""
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    try:
        rows: list[Row] = connection.connection.execute(native_text, parameters).fetchall()
    except sqlite3.Error:
        with connection.wrap_database_errors:
            raise
    return rows


@lru_cache(maxsize=4096)
def native(text: str) -> str:
    """The text with SQLite's placeholders; `%%s` is a literal `%s`."""
    return _PERCENT.sub(lambda match: "?" if match[0] == "%s" else "%", text)
