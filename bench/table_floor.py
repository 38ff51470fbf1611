# ruff: noqa: E402  (Django must be ready before the encoders are imported)
"""The floor of long responses: `python -m bench.table_floor FORMAT DATABASE`, in the environment of an instance.

A bare cursor and the encoder of a format, which sends nothing to anybody. DATABASE is a file of SQLite or a postgres://
address. Prints the seconds by the clock and by processor time, and the bytes.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import django
import psycopg

django.setup()

from bench.tables import COLUMNS
from domain.table_api.formats import FORMATS
from domain.table_api.table_query import ColumnType, TableColumn, TableQuery

_FETCHED_ROWS = 500


def main(form_name: str, database: str) -> None:
    """Encode every product."""
    is_sqlite = not database.startswith("postgres")
    query = TableQuery("sqlite" if is_sqlite else "postgresql", "", (), tuple(_column(*each) for each in COLUMNS))
    (form,) = [each for each in FORMATS if each.name == form_name]
    # Imported only for the format that uses it.
    list(form.encode(query, []))
    cursor: Any
    if is_sqlite:
        cursor = sqlite3.connect(database).cursor()
        outputs = [name for _, _, name in COLUMNS]
    else:
        connection = psycopg.connect(database)
        connection.execute("SET TIME ZONE 'UTC'")
        cursor = connection.cursor("floor")
        outputs = [_output(kind, name) for _, kind, name in COLUMNS]
    started, used = time.perf_counter(), time.process_time()
    cursor.execute(f"SELECT {', '.join(outputs)} FROM domain_product")
    size = sum(len(part) for part in form.encode(query, _batches(cursor)))
    print(time.perf_counter() - started, time.process_time() - used, size)


def _column(name: str, kind: str, _stored: str) -> TableColumn:
    is_decimal = kind == "DECIMAL"
    return TableColumn(name, ColumnType[kind], True, 18 if is_decimal else None, 6 if is_decimal else None)


def _output(kind: str, name: str) -> str:
    if kind == "GUID":
        return f"{name}::text"
    return f"trim_scale({name})::text" if kind == "DECIMAL" else name


def _batches(cursor: Any) -> Iterator[Sequence[tuple[Any, ...]]]:
    while rows := cursor.fetchmany(_FETCHED_ROWS):
        yield rows


if __name__ == "__main__":
    main(*sys.argv[1:])
