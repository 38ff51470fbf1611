"""OData JSON (OData JSON 4.01), and NDJSON, one object per line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson

from domain.database.bypass import Row
from domain.query.run.row_json import DUMP_OPTIONS, base64url, real_number, scaled_number
from domain.table_api.formats.base import Format, compiled
from domain.table_api.table_query import ColumnType, TableColumn, TableQuery

_BOOLS = {None: None, 0: False, 1: True}


def _moment(text: str | None) -> str | None:
    """SQLite's text of a time."""
    return None if text is None else f"{text[:10]}T{text[11:]}Z"


def _number(text: str | None) -> orjson.Fragment | None:
    """PostgreSQL's text of a number."""
    return None if text is None else orjson.Fragment(text)


_SQLITE: dict[ColumnType, Callable[[Any], Any]] = {
    ColumnType.BOOL: _BOOLS.__getitem__,
    ColumnType.DATETIME: _moment,
    ColumnType.DOUBLE: real_number,
    ColumnType.BINARY: base64url,
}
_POSTGRESQL: dict[ColumnType, Callable[[Any], Any]] = {
    ColumnType.DECIMAL: _number,
    ColumnType.DOUBLE: _number,
    ColumnType.BINARY: base64url,
}


def _converter(column: TableColumn, vendor: str) -> Callable[[Any], Any] | None:
    if vendor == "sqlite" and column.type is ColumnType.DECIMAL:
        return scaled_number(column.scale or 0)
    return (_SQLITE if vendor == "sqlite" else _POSTGRESQL).get(column.type)


def objects(query: TableQuery) -> Callable[[Sequence[Row]], list[dict[str, Any]]]:
    """A function from rows to objects that orjson writes."""
    names: dict[str, Any] = {}

    def member(column: TableColumn, variable: str) -> str:
        convert = _converter(column, query.vendor)
        if convert is None:
            return f"{column.name!r}: {variable}"
        names[f"to_{variable}"] = convert
        return f"{column.name!r}: to_{variable}({variable})"

    return compiled(query.columns, member, "{{}}", names)


def _json(query: TableQuery, batches: Iterable[Sequence[Row]]) -> Iterator[bytes]:
    of_rows = objects(query)
    head: dict[str, Any] = {"@odata.context": query.context} if query.context else {}
    if query.count is not None:
        head["@odata.count"] = query.count
    separator = orjson.dumps(head)[:-1] + (b"," if head else b"") + b'"value":['
    for rows in batches:
        yield separator + orjson.dumps(of_rows(rows), option=DUMP_OPTIONS)[1:-1]
        separator = b","
    end = b"]" if separator == b"," else separator + b"]"
    for name, link in (("nextLink", query.next_link), ("deltaLink", query.delta_link)):
        if link:
            end += b',"@odata.%s":%s' % (name.encode(), orjson.dumps(link))
    yield end + b"}"


def _lines(query: TableQuery, batches: Iterable[Sequence[Row]]) -> Iterator[bytes]:
    of_rows = objects(query)
    options = DUMP_OPTIONS | orjson.OPT_APPEND_NEWLINE
    for rows in batches:
        yield b"".join([orjson.dumps(each, option=options) for each in of_rows(rows)])


#: An object without closing brace.
_BROKEN = b'{"error":'
JSON = Format("json", "application/json", "json", _json, _BROKEN)
NDJSON = Format("ndjson", "application/x-ndjson", "ndjson", _lines, _BROKEN)
