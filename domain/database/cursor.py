"""Executes constant SQL statements with %s placeholders, without Django's cursor where that is possible.

Errors are Django's in either case. With execute wrappers or the log of queries, statements use Django's cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from domain.database import postgresql, sqlite
from domain.database.bypass import Row, prepare_bypass


def fetch(text: str, parameters: Sequence[Any]) -> list[Row]:
    """Every row of a statement, in the driver's form. Raises Django's database errors."""
    connection = connections["default"]
    if prepare_bypass(connection):
        if connection.vendor == "sqlite":
            return sqlite.fetch(connection, sqlite.native(text), parameters)
        return postgresql.fetch_untyped(connection, text, parameters)
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        rows: list[Row] = cursor.fetchall()
    return rows


def change(text: str, parameters: Sequence[Any]) -> int:
    """Execute a statement without result rows and return the number of changed rows. Raises as `fetch`."""
    connection = connections["default"]
    if prepare_bypass(connection):
        if connection.vendor == "sqlite":
            return sqlite.change(connection, text, parameters)
        return postgresql.change(connection, text, parameters)
    with connection.cursor() as cursor:
        cursor.execute(text, parameters)
        return int(cursor.rowcount)


def change_many(text: str, rows: Sequence[Sequence[Any]], *, connection: BaseDatabaseWrapper | None = None) -> None:
    """Execute a statement without result rows for each set of parameters. Raises as `fetch`.

    connection: the default connection, if the caller has it; the look-up takes a tenth of a short statement's time.
    """
    if connection is None:
        connection = connections["default"]
    if prepare_bypass(connection):
        if connection.vendor == "sqlite":
            sqlite.change_many(connection, text, rows)
        else:
            postgresql.change_many(connection, text, rows)
        return
    with connection.cursor() as cursor:
        cursor.executemany(text, rows)
