"""The parameters of a request for the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from domain.syntax.ast import QueryOptions
from domain.table_api.formats import Format
from identity.context import CallContext


@dataclass(frozen=True, slots=True)
class TableRequest:
    """A request for rows.

    size       rows of a page; None: all rows
    base       the URL without options of paging
    metadata   the context URL of a JSON answer; "" for none
    version    OData version of the response
    headers    headers that describe the format
    """

    options: QueryOptions
    context: CallContext
    form: Format
    size: int | None
    base: str
    metadata: str
    version: str
    headers: Mapping[str, str]
