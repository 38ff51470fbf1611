"""Reads entries as the database has them, including tampered ones with invalid values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.db import connection

from audit.hashing import Row
from audit.models import AuditEntry

TABLE = AuditEntry._meta.db_table
#: Rows of one statement.
STEP = 5_000


def rows_read(condition: str, order: str, parameters: Sequence[Any], limit: int = STEP) -> list[Row]:
    """The first entries of a condition."""
    return [Row(*row) for row in raw_rows(TABLE, Row._fields, {"at"}, condition, order, parameters, limit)]


def raw_rows(
    table: str,
    columns: Sequence[str],
    times: Collection[str],
    condition: str,
    order: str,
    parameters: Sequence[Any],
    limit: int = STEP,
) -> list[tuple[Any, ...]]:
    """The first rows of a table, as the driver gives them. Accepts text that is not UTF-8, which SQLite can have.

    times: the columns of times, which are texts on SQLite.
    """
    if connection.vendor == "sqlite":
        # As text: the driver would convert the column to a datetime, and fail at a tampered one.
        columns = [f"{name} || ''" if name in times else name for name in columns]
    text = f"SELECT {', '.join(columns)} FROM {table} WHERE {condition} ORDER BY {order} LIMIT {limit}"
    with connection.cursor() as cursor:
        raw: Any = connection.connection
        usual = getattr(raw, "text_factory", None)
        if usual is not None:
            raw.text_factory = _decoded
        try:
            cursor.execute(text, parameters)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows
        finally:
            if usual is not None:
                raw.text_factory = usual


def chained_rows(after: int) -> Iterator[list[Row]]:
    """The rows after a position, in steps."""
    while step := rows_read("position > %s", "position", [after]):
        yield step
        if len(step) < STEP or not isinstance(step[-1].position, int):
            return
        after = step[-1].position


def waiting_rows() -> Iterator[list[Row]]:
    """The rows without a position, in steps."""
    after = 0
    while step := rows_read("position IS NULL AND id > %s", "id", [after]):
        yield step
        after = step[-1].id


def rows_of_kind(kind: str, after: int = 0) -> Iterator[list[Row]]:
    """The rows of a kind, chained or not, after an id, in steps."""
    while step := rows_read("kind = %s AND id > %s", "id", [kind, after]):
        yield step
        after = step[-1].id


def _decoded(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
