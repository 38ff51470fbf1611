"""Comma-separated values (RFC 4180) in UTF-8, with a header row.

Texts are quoted and null is an empty field, so that an empty text differs from null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from domain.database.bypass import Row
from domain.query.run.row_json import base64url
from domain.query.sql.reals import decimal_text, real_text
from domain.table_api.formats.base import Format, compiled
from domain.table_api.table_query import ColumnType, TableColumn, TableQuery


def _text(value: str | None) -> str:
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if '"' in value else f'"{value}"'


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def _scaled(scale: int) -> Callable[[int | None], str]:
    return lambda value: decimal_text(value, scale) or ""


def _moment(value: Any) -> str:
    """SQLite's text, or PostgreSQL's value, of a time in UTC."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else value.replace(tzinfo=None).isoformat(" ")
    return f"{text[:10]}T{text[11:]}Z"


_BOOLS = {None: "", 0: "false", 1: "true"}
_CELLS: dict[ColumnType, Callable[[Any], str]] = {
    ColumnType.STRING: _text,
    ColumnType.JSON: _text,
    ColumnType.BOOL: _BOOLS.__getitem__,
    ColumnType.DATETIME: _moment,
    ColumnType.BINARY: lambda value: base64url(value) or "",
}


def _converter(column: TableColumn, vendor: str) -> Callable[[Any], str]:
    if vendor == "sqlite" and column.type is ColumnType.DECIMAL:
        return _scaled(column.scale or 0)
    if vendor == "sqlite" and column.type is ColumnType.DOUBLE:
        return lambda value: real_text(value) or ""
    return _CELLS.get(column.type, _plain)


def _csv(query: TableQuery, batches: Iterable[Sequence[Row]]) -> Iterator[bytes]:
    names: dict[str, Any] = {}

    def cell(column: TableColumn, variable: str) -> str:
        names[f"to_{variable}"] = _converter(column, query.vendor)
        return f"to_{variable}({variable})"

    lines = compiled(query.columns, cell, "','.join(({},))", names)
    yield (",".join(_text(column.name) for column in query.columns) + "\r\n").encode()
    for rows in batches:
        yield ("\r\n".join(lines(rows)) + "\r\n").encode()


#: A quoted field without closing quote; the line before it is complete.
_BROKEN = b'"The answer has broken off.'
CSV = Format("csv", "text/csv", "csv", _csv, _BROKEN)
