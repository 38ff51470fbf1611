"""Formats of Apache Arrow: the IPC stream, and Parquet.

pyarrow converts whole columns of a batch at once. It is imported on demand: it takes 30 MB, and most instances never
need it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from domain.database.bypass import Row
from domain.table_api.formats.base import Format
from domain.table_api.formats.written import Written
from domain.table_api.table_query import ColumnType, TableColumn, TableQuery
from foundation.execution_slot import yield_to_requests

#: Rows of an Arrow record batch, and of a Parquet row group, which is held in memory.
ARROW_ROWS = 2_500
PARQUET_ROWS = 10_000
_MAX_PRECISION = 38


def _arrow(query: TableQuery, batches: Iterable[Sequence[Row]]) -> Iterator[bytes]:
    pa = importlib.import_module("pyarrow")
    return _written(query, batches, ARROW_ROWS, lambda file, schema: pa.ipc.new_stream(file, schema))


def _parquet(query: TableQuery, batches: Iterable[Sequence[Row]]) -> Iterator[bytes]:
    importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    return _written(query, batches, PARQUET_ROWS, lambda file, schema: parquet.ParquetWriter(file, schema))


def _written(
    query: TableQuery, batches: Iterable[Sequence[Row]], size: int, writer: Callable[[Any, Any], Any]
) -> Iterator[bytes]:
    pa = importlib.import_module("pyarrow")
    schema = pa.schema([pa.field(each.name, _type(pa, each), nullable=each.is_nullable) for each in query.columns])
    file = Written()
    with writer(pa.PythonFile(file, mode="w"), schema) as out:
        for rows in _gathered(batches, size):
            cells = zip(*rows, strict=True)
            arrays = []
            for column, its_cells in zip(query.columns, cells, strict=True):
                arrays.append(_array(pa, column, its_cells, query.vendor))
                yield_to_requests()
            out.write_batch(pa.record_batch(arrays, schema=schema))
            yield file.take()
    yield file.take()


def _gathered(batches: Iterable[Sequence[Row]], size: int) -> Iterator[list[Row]]:
    """Larger batches of about `size` rows."""
    waiting: list[Sequence[Row]] = []
    count = 0
    for rows in batches:
        waiting.append(rows)
        count += len(rows)
        if count >= size:
            yield list(chain.from_iterable(waiting))
            waiting, count = [], 0
    if waiting:
        yield list(chain.from_iterable(waiting))


def _type(pa: Any, column: TableColumn) -> Any:
    match column.type:
        case ColumnType.INTEGER:
            return pa.int64()
        case ColumnType.DECIMAL:
            return pa.decimal128(min(column.precision or _MAX_PRECISION, _MAX_PRECISION), column.scale or 0)
        case ColumnType.DOUBLE:
            return pa.float64()
        case ColumnType.BOOL:
            return pa.bool_()
        case ColumnType.DATE:
            return pa.date32()
        case ColumnType.DATETIME:
            return pa.timestamp("us", tz="UTC")
        case ColumnType.BINARY:
            return pa.binary()
    return pa.string()


def _array(pa: Any, column: TableColumn, cells: Sequence[Any], vendor: str) -> Any:
    """The cells, in the driver's form, as an array of the column's type."""
    wanted = _type(pa, column)
    if vendor == "sqlite":
        match column.type:
            case ColumnType.DECIMAL:
                # The same integers, read with the scale.
                whole = pa.array(cells, pa.int64()).cast(pa.decimal128(_MAX_PRECISION, 0))
                return pa.Array.from_buffers(wanted, len(whole), whole.buffers())
            case ColumnType.BOOL:
                return pa.array(cells, pa.int8()).cast(wanted)
            case ColumnType.DATE:
                return pa.array(cells, pa.string()).cast(wanted)
            case ColumnType.DATETIME:
                return pa.array(cells, pa.string()).cast(pa.timestamp("us")).cast(wanted)
    elif column.type in (ColumnType.DECIMAL, ColumnType.DOUBLE):
        return pa.array(cells, pa.string()).cast(wanted)
    return pa.array(cells, wanted)


#: The header of a message of 2^24 bytes, without the message.
_BROKEN = b"\xff\xff\xff\xff\x00\x00\x00\x01"
ARROW = Format("arrow", "application/vnd.apache.arrow.stream", "arrows", _arrow, _BROKEN)
#: Parquet has its metadata at the end of the file, so a truncated file is invalid anyway.
PARQUET = Format("parquet", "application/vnd.apache.parquet", "parquet", _parquet, is_compressed=True)
