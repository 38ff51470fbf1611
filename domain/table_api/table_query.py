"""A read of one table: SQL with its parameters, and the columns of its rows. It can be pickled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class ColumnType(Enum):
    """The type of a column; the enum's value is its name in `$metadata`.

    A cell has the form in which the database's driver returns the column (Dialect.output):

    =========  =======================================  ==============================
    type       SQLite                                   PostgreSQL
    =========  =======================================  ==============================
    GUID       str                                      str
    STRING     str                                      str
    JSON       str, a JSON text                         str or bytes, a JSON text
    INTEGER    int                                      int
    DECIMAL    int, the value times 10 ** scale         str, the decimal text
    DOUBLE     float                                    str, the decimal text
    BOOL       0 or 1                                   bool
    DATE       str, 2026-01-31                          datetime.date
    DATETIME   str, 2026-01-31 10:00:00[.000001], UTC   datetime.datetime, aware, UTC
    BINARY     bytes                                    bytes
    =========  =======================================  ==============================

    None stands for null in every column.
    """

    GUID = "Edm.Guid"
    STRING = "Edm.String"
    JSON = "Edm.Untyped"
    INTEGER = "Edm.Int64"
    DECIMAL = "Edm.Decimal"
    DOUBLE = "Edm.Double"
    BOOL = "Edm.Boolean"
    DATE = "Edm.Date"
    DATETIME = "Edm.DateTimeOffset"
    BINARY = "Edm.Binary"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of the answer. precision and scale are those of a DECIMAL, max_length that of a STRING."""

    name: str
    type: ColumnType
    is_nullable: bool
    precision: int | None = None
    scale: int | None = None
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class TableQuery:
    """One SELECT, ready to run.

    vendor      the database of `text`: `sqlite` or `postgresql`
    text        with the driver's placeholders
    parameters  their values, in the driver's form
    columns     one for each column of the rows
    context     `@odata.context` of the JSON answer; "" for none
    counting    SELECT of the number of all matching rows, and its parameters, for `$count=true`
    count       that number, once it is known
    next_link   `@odata.nextLink` of the JSON answer; "" for none
    delta_link  `@odata.deltaLink` of the JSON answer; "" for none
    """

    vendor: str
    text: str
    parameters: tuple[Any, ...]
    columns: tuple[TableColumn, ...]
    context: str = ""
    counting: tuple[str, tuple[Any, ...]] | None = None
    count: int | None = None
    next_link: str = ""
    delta_link: str = ""
