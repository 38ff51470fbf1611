"""Rows that very many tests start with: made by the product once in a test process, inserted from memory afterwards.

A company with a product and a caller with a token are two hundred statements, of which a test wants to know nothing; on
PostgreSQL they took longer than the test. Each test still has a database of its own, by its own transaction, and a
process that remembers nothing (tests.domain.conftest.fresh_process): only the way into the database is shorter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from django.db import connection, transaction

from domain.database import cursor
from domain.database.bypass import Row

T = TypeVar("T")

#: Sessions and tokens among the rows grow old; long before that they are made anew.
MAX_AGE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class _Table:
    """What one table has more and less than before."""

    name: str
    columns: tuple[str, ...]
    key: str
    more: Sequence[Row]
    less: Sequence[Any]

    def put(self) -> None:
        quote = connection.ops.quote_name
        if self.less:
            sql = f"DELETE FROM {quote(self.name)} WHERE {quote(self.key)} = %s"
            cursor.change_many(sql, [(key,) for key in self.less])
        if self.more:
            columns, marks = ", ".join(map(quote, self.columns)), ", ".join(["%s"] * len(self.columns))
            sql = f"INSERT INTO {quote(self.name)} ({columns}) VALUES ({marks})"
            cursor.change_many(sql, self.more)


class Prepared(Generic[T]):
    """`make` by another way: called, the rows that it writes are there, and what it returned is returned.

    Only rows are put back, so `make` must leave nothing else that matters behind.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._tables: list[_Table] = []
        self._rows_before: list[int] = []
        self._made_at = float("-inf")
        self._value: T | None = None

    def __call__(self) -> T:
        """In the test's transaction. Where the tables are not as they were when the rows were made: make them anew."""
        if self._tables and time.monotonic() - self._made_at < MAX_AGE_SECONDS and self._is_as_before():
            with transaction.atomic():
                for table in self._tables:
                    table.put()
            return cast(T, self._value)
        before = _contents()
        value = self._value = self._make()
        self._tables = _difference(before, _contents())
        self._rows_before = [len(before[table.name]) for table in self._tables]
        self._made_at = time.monotonic()
        return value

    def _is_as_before(self) -> bool:
        quote = connection.ops.quote_name
        counts = ", ".join(f"(SELECT COUNT(*) FROM {quote(table.name)})" for table in self._tables)
        return list(cursor.fetch(f"SELECT {counts}", ())[0]) == self._rows_before


def _contents() -> dict[str, dict[Any, Row]]:
    """Table → primary key → row, as the driver gives them."""
    found = {}
    for table in connection.introspection.table_names():
        names, key = _columns(table)
        rows = cursor.fetch(f"SELECT {', '.join(map(connection.ops.quote_name, names))} FROM {table}", ())
        found[table] = {row[key]: tuple(row) for row in rows}
    return found


def _difference(before: Mapping[str, Mapping[Any, Row]], after: Mapping[str, Mapping[Any, Row]]) -> list[_Table]:
    """Foreign keys are looked at when a transaction ends, so the order does not matter."""
    found = []
    for table, rows in after.items():
        known = before[table]
        more = [row for key, row in rows.items() if known.get(key) != row]
        less = [key for key, row in known.items() if rows.get(key) != row]
        if more or less:
            names, key = _columns(table)
            found.append(_Table(table, names, names[key], more, less))
    return found


_known_columns: dict[str, tuple[tuple[str, ...], int]] = {}


def _columns(table: str) -> tuple[tuple[str, ...], int]:
    """The table's columns, and which of them is the primary key."""
    if table not in _known_columns:
        with connection.cursor() as opened:
            opened.execute(f"SELECT * FROM {connection.ops.quote_name(table)} LIMIT 0")
            names = tuple(column[0] for column in opened.description)
            key = connection.introspection.get_primary_key_column(opened, table)
        assert key is not None, f"{table} has no primary key"
        _known_columns[table] = names, names.index(key)
    return _known_columns[table]
