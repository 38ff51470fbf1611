"""The rows of an answer and their number come from one snapshot, and a cancelled read ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.db import DatabaseError, connection

from domain.syntax import parse_query_options
from domain.table_api import planning
from domain.table_api.catalogue import tables as catalogue
from domain.table_api.formats import FORMATS
from domain.table_api.rows import TableRows
from domain.table_api.table_query import ColumnType, TableColumn, TableQuery
from tests.rules.cast import World, dataset, new_product

# What other transactions do is the point here.
pytestmark = pytest.mark.django_db(transaction=True)


def query_of(world: World, options: str) -> TableQuery:
    return planning.plan(catalogue()["gen_products"], parse_query_options(options), world.context)


def test_rows_that_others_add_and_remove_meanwhile_change_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.table_api.rows.BATCH_ROWS", 2)
    ds = dataset(world.context)
    products = [new_product(ds, world, f"S{number}") for number in range(6)]
    ds.commit()
    query = query_of(world, "$select=Part_Number&$filter=startswith(Part_Number,'S')&$count=true")
    with closing(TableRows(query)) as rows:
        assert rows.count() == 6
        batches = iter(rows)
        found = [*next(batches)]
        ds = dataset(world.context)
        for product in products[2:]:
            stored = ds.load("General.Products.Products", product.id)
            assert stored is not None
            ds.delete(stored)
        new_product(ds, world, "S9")
        ds.commit()
        found += [row for batch in batches for row in batch]
    assert sorted(found) == [(f"S{number}",) for number in range(6)]
    with closing(TableRows(query)) as rows:
        assert rows.count() == 3


def test_a_cancelled_read_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domain.table_api.rows.BATCH_ROWS", 1)
    ds = dataset(world.context)
    new_product(ds, world, "S1")
    ds.commit()
    rows = TableRows(query_of(world, "$select=Part_Number"))
    batches = iter(rows)
    next(batches)
    rows.cancel()
    with pytest.raises(DatabaseError):
        next(batches)
    rows.close()
    rows.close()
    rows.cancel()


COLUMNS = (TableColumn("Name", ColumnType.STRING, True), TableColumn("Number", ColumnType.INTEGER, True))


def _csv_by_pandas(body: bytes) -> Any:
    return pandas.read_csv(pa.BufferReader(body))


def _lines(body: bytes) -> Any:
    return [json.loads(line) for line in body.splitlines()]


@pytest.mark.parametrize(
    "name, read",
    [
        ("json", json.loads), ("ndjson", _lines), ("csv", _csv_by_pandas),
        ("arrow", lambda body: pa.ipc.open_stream(body).read_all()),
        ("parquet", lambda body: pq.read_table(pa.BufferReader(body))),
    ],
)  # fmt: skip
def test_no_reader_takes_a_body_that_broke_off_for_whole(name: str, read: Callable[[bytes], Any]) -> None:
    """OData Protocol 4.01, 9.5."""
    (form,) = [each for each in FORMATS if each.name == name]

    def batches() -> Iterator[Sequence[tuple[Any, ...]]]:
        yield [("a", 1), ("b", 2)] * 12_000
        raise DatabaseError("gone")

    body = b""
    parts = form.encode(TableQuery(connection.vendor, "", (), COLUMNS), batches())
    try:
        for part in parts:
            body += part
    except DatabaseError:
        body += form.broken
    with pytest.raises((ValueError, pa.ArrowException)):
        read(body)
