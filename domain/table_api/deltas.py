"""Change tracking of tables (spec 02, 2.2), by the feed and the tokens of the Domain API (domain.odata.read.deltas).

A row is reported if its entity was written. So a derived table also reports rows of which only a column of the base
has changed.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import orjson

from domain.odata.read import deltas
from domain.odata.resources.targets import Collection
from domain.query.run.row_json import DUMP_OPTIONS
from domain.syntax import parse_select
from domain.syntax.ast import QueryOptions
from domain.table_api import planning
from domain.table_api.catalogue import Table
from domain.table_api.formats.json_text import objects
from domain.table_api.rows import TableRows
from domain.table_api.table_request import TableRequest
from domain.table_api.translation import unknown_table
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from identity.context import CallContext


def tracking_base(table: Table, asked: TableRequest) -> str | None:
    """The delta link of a response with all rows; its further pages have the same token. None if not tracked.

    Call before the rows are read. Raises as `deltas.read_token`, and NotSupported for a token beside an option that
    cannot be tracked.
    """
    options, context = asked.options, asked.context
    if options.deltatoken is None and not deltas.tracks_changes(context):
        return None
    target = _target(table, options, context)
    if target is None:
        return None
    if options.deltatoken is None:
        watermark = deltas.watermark_for(target.repository, context)
    else:
        watermark = deltas.read_token(options.deltatoken, target, options)
    if watermark is None:
        return None
    return f"{_open(asked.base)}$deltatoken={deltas.make_token(watermark, target, options)}"


def delta_json(table: Table, asked: TableRequest) -> bytes:
    """The changes since $deltatoken, in pages: changed rows, and ids of removed rows."""
    options, context = asked.options, asked.context
    target = _target(table, options, context)
    assert target is not None
    assert options.deltatoken is not None
    delta = deltas.Delta(options.deltatoken, target, options, context, max_page_size=asked.size)
    rows = _rows(table, options, context, delta.written)
    removed = [_removed(table, asked, id, reason) for id, reason in delta.gone(rows)]
    head = {"@odata.context": f"{asked.metadata}/$delta"} if asked.metadata else {}
    name, link = delta.next_link(_open(asked.base))
    return orjson.dumps({**head, "value": [*rows.values(), *removed], f"@odata.{name}": link}, option=DUMP_OPTIONS)


def _removed(table: Table, asked: TableRequest, id: str, reason: str) -> dict[str, Any]:
    """A removed row, in the format of the OData version (OData JSON 4.01, 15.3, and 4.0, 15.2)."""
    if asked.version == "4.0":
        context = f"{asked.metadata.partition('#')[0]}#{table.name}/$deletedEntity"
        return {"@odata.context": context, "id": f"{table.name}({id})", "reason": reason}
    return {"@removed": {"reason": reason}, "Id": id}


def _target(table: Table, options: QueryOptions, context: CallContext) -> Collection | None:
    """The set that the table stores; None for a table or query that cannot be tracked."""
    if not planning.readable(table, context):
        raise unknown_table(table.name)
    target = None if table.repository is None else Collection(table.repository)
    obstacle = Message("a table of values") if target is None else deltas.untrackable(target, options)
    if obstacle is None:
        return target
    if options.deltatoken is not None:
        raise errors.NotSupported(Message("change tracking with {0}", obstacle), target="$deltatoken")
    return None


def _rows(table: Table, options: QueryOptions, context: CallContext, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Id → row, of those ids whose rows match the query."""
    if not ids:
        return {}
    select = (*options.select, *parse_select("Id")) if options.select else ()
    among = replace(
        options, deltatoken=None, filter=deltas.among(ids, options.filter), select=select, orderby=(), count=None
    )
    query = planning.plan(table, among, context)
    asked = planning.column_names(table, options)
    with closing(TableRows(query)) as rows:
        made = objects(query)
        found = [row for batch in rows for row in made(batch)]
    return {row["Id"]: {name: row[name] for name in asked} for row in found}


def _open(base: str) -> str:
    return f"{base}&" if "?" in base else f"{base}?"


__all__ = ["delta_json", "tracking_base"]
