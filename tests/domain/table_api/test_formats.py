"""Every format of the Table API has the same rows (spec 11.1)."""

from __future__ import annotations

import base64
import csv
import datetime
import io
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from domain.table_api.formats import FORMATS, columnar
from domain.table_api.rows import TableRows
from domain.table_api.table_query import ColumnType, TableColumn, TableQuery

pytestmark = pytest.mark.django_db

Value = Any
#: A column → (values, its SQLite form, PostgreSQL's type and its output).
_MOMENTS = st.datetimes(timezones=st.just(datetime.UTC))
_SCALED = st.integers(-(10**17), 10**17).map(lambda number: Decimal(number).scaleb(-4))
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
COLUMNS: dict[str, tuple[TableColumn, st.SearchStrategy[Value], Callable[[Value], Value], str, str]] = {
    "Id": (
        TableColumn("Id", ColumnType.GUID, False), st.uuids().map(str), str, "uuid", "{}::text",
    ),
    "Name": (TableColumn("Name", ColumnType.STRING, True, max_length=20), _TEXTS, str, "text", "{}"),
    "Names": (
        TableColumn("Names", ColumnType.JSON, True),
        st.dictionaries(st.sampled_from(["EN", "BG", "DE"]), _TEXTS).map(lambda texts: json.dumps(texts)),
        str, "text", "{}",
    ),
    "Number": (
        TableColumn("Number", ColumnType.INTEGER, True), st.integers(-(2**31), 2**31 - 1), int, "int", "{}::bigint",
    ),
    "Amount": (
        TableColumn("Amount", ColumnType.DECIMAL, True, precision=19, scale=4), _SCALED,
        lambda value: int(value.scaleb(4)), "numeric(19,4)", "trim_scale({})::text",
    ),
    "Void": (TableColumn("Void", ColumnType.BOOL, True), st.booleans(), int, "boolean", "{}"),
    "Day": (TableColumn("Day", ColumnType.DATE, True), st.dates(), lambda value: value.isoformat(), "date", "{}"),
    "Moment": (
        TableColumn("Moment", ColumnType.DATETIME, True), _MOMENTS,
        lambda value: value.replace(tzinfo=None).isoformat(" "), "timestamptz", "{}",
    ),
    "Picture": (TableColumn("Picture", ColumnType.BINARY, True), st.binary(max_size=20), bytes, "bytea", "{}"),
}  # fmt: skip
NAMES = list(COLUMNS)
ROWS = st.lists(
    st.tuples(*(values if name == "Id" else st.none() | values for name, (_, values, *_) in COLUMNS.items())),
    max_size=8,
)


def stored(rows: Sequence[Sequence[Value]]) -> TableQuery:
    """A query of a table with these rows."""
    is_sqlite = connection.vendor == "sqlite"
    types = ", ".join(f'"{name}" {"" if is_sqlite else sql_type}' for name, (_, _, _, sql_type, _) in COLUMNS.items())
    outputs = ", ".join(
        f'"{name}"' if is_sqlite else output.format(f'"{name}"') for name, (*_, output) in COLUMNS.items()
    )
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS every_type")
        cursor.execute(f"CREATE TABLE every_type (place int, {types})")
        for place, row in enumerate(rows):
            forms = [
                encode(value) if is_sqlite and value is not None else value
                for value, (_, _, encode, *_) in zip(row, COLUMNS.values(), strict=True)
            ]
            marks = ", ".join(["%s"] * (len(forms) + 1))
            cursor.execute(f"INSERT INTO every_type VALUES ({marks})", [place, *forms])
    text = f"SELECT {outputs} FROM every_type ORDER BY place"
    return TableQuery(connection.vendor, text, (), tuple(column for column, *_ in COLUMNS.values()))


def _of_text(name: str, value: Any) -> Value:
    """The value of a column from JSON or CSV."""
    if value is None:
        return None
    match COLUMNS[name][0].type:
        case ColumnType.DECIMAL:
            return Decimal(value)
        case ColumnType.INTEGER:
            return int(value)
        case ColumnType.BOOL:
            return value if isinstance(value, bool) else {"true": True, "false": False}[value]
        case ColumnType.DATE:
            return datetime.date.fromisoformat(value)
        case ColumnType.DATETIME:
            return datetime.datetime.fromisoformat(value)
        case ColumnType.BINARY:
            return base64.urlsafe_b64decode(value)
    return value


def _from_json(body: bytes) -> Iterable[Sequence[Value]]:
    found = json.loads(body, parse_float=Decimal)["value"]
    return [[_of_text(name, row[name]) for name in NAMES] for row in found]


def _from_lines(body: bytes) -> Iterable[Sequence[Value]]:
    # Not splitlines(): texts hold other ends of lines.
    found = [json.loads(line, parse_float=Decimal) for line in body.decode().split("\n") if line]
    return [[_of_text(name, row[name]) for name in NAMES] for row in found]


def _from_csv(body: bytes) -> Iterable[Sequence[Value]]:
    """Python's reader does not tell an empty text from none: see test_an_empty_text_is_not_null."""
    head, *rows = csv.reader(io.StringIO(body.decode(), newline=""))
    assert head == NAMES
    return [
        [None if cell == "" else _of_text(name, cell) for name, cell in zip(NAMES, row, strict=True)] for row in rows
    ]


def _from_arrow(body: bytes) -> Iterable[Sequence[Value]]:
    return _from_table(pa.ipc.open_stream(body).read_all())


def _from_parquet(body: bytes) -> Iterable[Sequence[Value]]:
    return _from_table(pq.read_table(io.BytesIO(body)))


def _from_table(table: pa.Table) -> Iterable[Sequence[Value]]:
    assert table.column_names == NAMES
    return [list(row.values()) for row in table.to_pylist()]


READERS: dict[str, Callable[[bytes], Iterable[Sequence[Value]]]] = {
    "json": _from_json, "ndjson": _from_lines, "csv": _from_csv, "arrow": _from_arrow, "parquet": _from_parquet,
}  # fmt: skip


def encoded(name: str, query: TableQuery) -> bytes:
    (found,) = [each for each in FORMATS if each.name == name]
    with closing(TableRows(query)) as rows:
        return b"".join(found.encode(query, rows))


@given(ROWS)
def test_every_format_has_the_same_values(rows: list[tuple[Value, ...]]) -> None:
    query = stored(rows)
    for name, read in READERS.items():
        nothing = ("", b"") if name == "csv" else ()
        expected = [[None if value in nothing else value for value in row] for row in rows]
        assert [list(row) for row in read(encoded(name, query))] == expected, name


def test_an_empty_text_is_not_null() -> None:
    row = [str(uuid.UUID(int=0)), "", *[None] * (len(NAMES) - 2)]
    assert encoded("csv", stored([row])).splitlines()[1].startswith(b'00000000-0000-0000-0000-000000000000,"",,')


@pytest.mark.parametrize("name", list(READERS))
def test_many_rows_are_several_batches(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domain.table_api.rows.BATCH_ROWS", 3)
    monkeypatch.setattr(columnar, "ARROW_ROWS", 5)
    monkeypatch.setattr(columnar, "PARQUET_ROWS", 5)
    rows = [[str(uuid.UUID(int=place)), *[None] * (len(NAMES) - 1)] for place in range(17)]
    assert [list(row) for row in READERS[name](encoded(name, stored(rows)))] == rows


@pytest.mark.parametrize("name", list(READERS))
def test_a_table_may_be_empty(name: str) -> None:
    assert list(READERS[name](encoded(name, stored([])))) == []


def test_json_tells_count_and_context() -> None:
    query = stored([])
    told = TableQuery(
        query.vendor, query.text, (), query.columns, "http://x/$metadata#T", None, 7, "http://x/T?$skip=3"
    )
    assert json.loads(encoded("json", told)) == {
        "@odata.context": "http://x/$metadata#T", "@odata.count": 7, "value": [], "@odata.nextLink": "http://x/T?$skip=3",
    }  # fmt: skip
