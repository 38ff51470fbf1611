"""Statements on SQLite's own connection, without Django's cursor."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from domain.database.bypass import Row

_PERCENT = re.compile("%[s%]")


def fetch(connection: BaseDatabaseWrapper, native_text: str, parameters: Sequence[Any]) -> list[Row]:
    """Every row of a statement with SQLite's placeholders. Raises Django's database errors."""
    rows: list[Row] = _execute(connection, native_text, parameters).fetchall()
    return rows


def change(connection: BaseDatabaseWrapper, text: str, parameters: Sequence[Any]) -> int:
    """Execute a statement with %s placeholders; the number of rows that it changed."""
    return int(_execute(connection, native(text), parameters).rowcount)


def change_many(connection: BaseDatabaseWrapper, text: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute a statement with %s placeholders for each set of parameters."""
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    try:
        connection.connection.executemany(native(text), rows)
    except sqlite3.Error:
        with connection.wrap_database_errors:
            raise


def _execute(connection: BaseDatabaseWrapper, native_text: str, parameters: Sequence[Any]) -> sqlite3.Cursor:
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    try:
        cursor: sqlite3.Cursor = connection.connection.execute(native_text, parameters)
    except sqlite3.Error:
        with connection.wrap_database_errors:
            raise
    return cursor


@lru_cache(maxsize=4096)
def native(text: str) -> str:
    """The text with SQLite's placeholders; `%%s` is a literal `%s`."""
    return _PERCENT.sub(lambda match: "?" if match[0] == "%s" else "%", text)
