"""What a request for the rows of a table asks for."""

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
    version    of OData, for what differs between versions
    headers    that tell the format
    """

    options: QueryOptions
    context: CallContext
    form: Format
    size: int | None
    base: str
    metadata: str
    version: str
    headers: Mapping[str, str]
