"""Statements whose text never changes, run with as little around them as Django allows.

Django's cursor for SQLite goes over each text by a regular expression to translate its placeholders, and through four
layers of Python: for a statement that finds one row this takes longer than the database does. Where nobody listens to
statements, they go to the driver's connection; errors are Django's all the same. Reads do so on PostgreSQL, too
(domain.database.postgresql).
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
    """Every row of a statement with %s placeholders, as the driver gives it. Raises Django's database errors."""
    connection = connections["default"]
    if _goes_natively(connection):
        return fetch_natively(connection, native(text), parameters)
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        rows: list[Row] = cursor.fetchall()
    return rows


def execute(text: str, parameters: Sequence[Any]) -> None:
    """As `fetch`, for a statement that gives no rows."""
    connection = connections["default"]
    if _goes_natively(connection):
        fetch_natively(connection, native(text), parameters)
        return
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)


def execute_many(text: str, rows: Sequence[Sequence[Any]], *, connection: BaseDatabaseWrapper | None = None) -> None:
    """A statement that gives no rows, once for each set of parameters.

    connection: the main database's, for who has it at hand; to look it up takes a tenth of what a short statement does.
    """
    if connection is None:
        connection = connections["default"]
    if not _goes_natively(connection):
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


def _goes_natively(connection: BaseDatabaseWrapper) -> bool:
    return connection.vendor == "sqlite" and goes_past(connection)


def goes_past(connection: BaseDatabaseWrapper) -> bool:
    """Whether a statement may go past Django's cursor: where no execute wrapper does more than count.

    Wrappers that only count statements (`only_counts`) are told of this one. A connection that is not open yet is
    opened, by Django.
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
    """Run a text with SQLite's own placeholders."""
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
    return _PERCENT.sub(lambda found: "?" if found[0] == "%s" else "%", text)
