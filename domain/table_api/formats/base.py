"""The base of the formats of rows, and functions over the columns of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from domain.database.bypass import Row
from domain.table_api.table_query import TableColumn, TableQuery

#: Encodes the body of a response, a batch of rows at a time.
Encoder = Callable[[TableQuery, Iterable[Sequence[Row]]], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format with its `$format` name, its media type, and its file name extension (`ending`).

    broken          ends a body that breaks off, so that every reader refuses it
    is_compressed   the format compresses by itself
    """

    name: str
    media_type: str
    ending: str
    encode: Encoder
    broken: bytes = b""
    is_compressed: bool = False


def compiled(
    columns: Sequence[TableColumn], cell: Callable[[TableColumn, str], str], row: str, names: dict[str, Any]
) -> Callable[[Sequence[Row]], list[Any]]:
    """A function from rows to a list of the values of the expression `row`.

    cell gives the expression of a column's value from the name of its variable; the cells, separated by commas, stand
    in place of `{}`. Names of columns enter expressions by repr(), values never do.
    """
    variables = [f"c{place}" for place in range(len(columns))]
    cells = ", ".join(cell(column, variable) for column, variable in zip(columns, variables, strict=True))
    source = f"lambda rows: [{row.replace('{}', cells, 1)} for {', '.join(variables)}, in rows]"
    made: Callable[[Sequence[Row]], list[Any]] = eval(source, names)  # noqa: S307
    return made
