"""Executes statements on sqlite3 connections, without Django's cursor. foundation.sqlite configures the connections."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from django.db import connections

from domain.database.bypass import Row
from foundation.short_texts import cache_short_texts

_PERCENT = re.compile("%[s%]")


def fetch(connection: Any, native_text: str, parameters: Sequence[Any]) -> list[Row]:
    """Every row of a statement with SQLite's placeholders. Raises Django's database errors."""
    if connection.begin_is_deferred:
        connection.begin_before(native_text)
    rows: list[Row] = _execute(connection, native_text, parameters).fetchall()
    return rows


def change(connection: Any, text: str, parameters: Sequence[Any]) -> int:
    """Execute a statement with %s placeholders and return the number of changed rows."""
    connection.begin_now()
    return int(_execute(connection, native(text), parameters).rowcount)


def change_many(connection: Any, text: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute a statement with %s placeholders for each set of parameters."""
    connection.begin_now()
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    try:
        connection.connection.executemany(native(text), rows)
    except sqlite3.Error:
        with connection.wrap_database_errors:
            raise


def _execute(connection: Any, native_text: str, parameters: Sequence[Any]) -> sqlite3.Cursor:
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    connection.bound_cache(native_text)
    try:
        cursor: sqlite3.Cursor = connection.connection.execute(native_text, parameters)
    except sqlite3.Error:
        with connection.wrap_database_errors:
            raise
    return cursor


def error_name(error: BaseException) -> str | None:
    """SQLite's name of an error, such as SQLITE_CONSTRAINT_UNIQUE."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, sqlite3.Error):
            return getattr(cause, "sqlite_errorname", None)  # the driver's own errors have none
        cause = cause.__cause__
    return None


def take_write_lock() -> None:
    """Take SQLite's write lock, by the open transaction's deferred BEGIN; does nothing on PostgreSQL.

    Call before reading rows that must not change until the transaction ends.
    """
    connection: Any = connections["default"]
    if connection.vendor == "sqlite":
        connection.begin_now()


@cache_short_texts(4096, longest=10_000)
def native(text: str) -> str:
    """The text with SQLite's placeholders; `%%s` is a literal `%s`."""
    return _PERCENT.sub(lambda match: "?" if match[0] == "%s" else "%", text)
