"""Exports rows of a repository as files that the import reads (spec 11, 11.2)."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import IO, Any

import orjson
from django.conf import settings

from domain.dataset.checks.access import allowed
from domain.dataset.lookups.name_binding import UnknownName, bind_path
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.odata.message.references import reference_path
from domain.odata.sheets.writing import sheet_writer
from domain.query import select_rows
from domain.syntax import parse_boolean_expression
from domain.syntax.ast import Expression, Logical
from foundation import errors
from foundation.batches import batched
from foundation.execution_slot import defer_to_slot
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message
from foundation.texts import utc_text
from identity.context import CallContext
from identity.rate_limits import count

#: Kind of file → media type.
KINDS = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "json": "application/json",
}
#: Maximum of a user's exports per minute: each counts at least this fraction of EXPORT_ROWS, the rows per minute.
_MOST_IN_A_MINUTE = 20
#: Number of rows per query.
_STEP = 1000


def count_export(exporter: object, rows: int) -> None:
    """Count an export of the user, or application. Raises TooManyRequests for more rows than a minute allows."""
    limit: int = settings.EXPORT_ROWS
    count(f"export:{exporter}", limit, amount=max(rows, limit // _MOST_IN_A_MINUTE, 1))


def importable(repository: Repository[Any], context: CallContext) -> list[str]:
    """The attributes that the caller may set and read, with the key first: the columns of exports and templates."""
    return [
        each.name
        for each in repository.attributes.values()
        if not (each.read_only or each.calculated or each.secret or each.key_alias)
        and (not each.is_reference or allowed(context, repositories[each.target], "read"))
    ]


def exported_rows(
    context: CallContext, repository: Repository[Any], names: Sequence[str], filter: Expression | None
) -> Iterator[tuple[Any, ...]]:
    """The rows that the caller may see, in the order of their keys, as canonical values. Memory is that of _STEP rows.

    names: attributes and paths (`Customer.Number`). Each query continues after the last key of the one before, so a row
    that is created meanwhile may be missing. Raises BadRequest for unknown names.
    """
    after = ""
    while True:
        behind = parse_boolean_expression(f"Id gt {after}") if after else None
        parts = tuple(part for part in (filter, behind) if part is not None)
        condition = Logical("and", parts) if len(parts) == 2 else next(iter(parts), None)
        rows = select_rows(repository, ("Id", *names), ctx=context, filter=condition, orderby="Id", limit=_STEP)
        yield from (row[1:] for row in rows)
        if len(rows) < _STEP:
            return
        after = rows[-1][0]
        defer_to_slot()


def rows_of(
    context: CallContext, repository: Repository[Any], names: Sequence[str], ids: Iterable[str]
) -> Iterator[tuple[Any, ...]]:
    """The rows with these keys, in this order, as from `exported_rows`; without deleted and hidden ones."""
    for batch in batched(ids, _STEP):
        rows = select_rows(repository, ("Id", *names), ctx=context, ids=batch)
        found = {row[0]: row[1:] for row in rows}
        yield from (found[id] for id in batch if id in found)
        defer_to_slot()


def checked_names(repository: Repository[Any], names: Sequence[str]) -> list[str]:
    """The names in the registry's spelling. Raises BadRequest for an unknown one, and for a secret attribute."""
    try:
        bound = [bind_path(repository, name.strip().replace("/", ".").split(".")) for name in names]
    except UnknownName as exc:
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$select", str(exc)) from exc
    for each in bound:
        if each.attribute is not None and each.attribute.secret:
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$select", Message("{0} cannot be exported", each.text))
    return [each.text for each in bound]


def write_export(
    file: IO[bytes], kind: str, repository: Repository[Any], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> int:
    """Write rows of these attributes as "csv", "xlsx" or "json"; returns their number. Raises as the writers."""
    if kind == "json":
        return _write_objects(file, repository, names, rows)
    writer = sheet_writer(file, kind)
    writer.begin(repository.set_name, names)
    number = 0
    for row in rows:
        writer.write(row)
        number += 1
    writer.close()
    return number


def _write_objects(
    file: IO[bytes], repository: Repository[Any], names: Sequence[str], rows: Iterable[Sequence[Any]]
) -> int:
    number = 0
    file.write(b'{"objects": [')
    for number, row in enumerate(rows, start=1):
        file.write((b",\n" if number > 1 else b"\n") + orjson.dumps(as_object(repository, names, row)))
    file.write(b"\n]}\n")
    return number


def as_object(repository: Repository[Any], names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    """A row as an object of Import; a path is an object in an object."""
    body: dict[str, Any] = {"@odata.type": f"Erp.{repository.entity_type}"}
    for name, value in zip(names, row, strict=True):
        if value is None:
            continue
        *path, last = name.split(".")
        inner = body
        for step in path:
            inner = inner.setdefault(step, {})
        inner[last] = _json(repository, name, value)
    if "Id" in body:
        body["@erpnet.findBy"] = {"Id": body["Id"]}
    return body


def _json(repository: Repository[Any], name: str, value: Any) -> Any:
    bound = bind_path(repository, name.split("."))
    if bound.kind is Kind.REFERENCE and bound.target:
        return {"@odata.id": reference_path(repositories[bound.target], value)}
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime.datetime():
            return utc_text(value)
        case datetime.date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case Mapping():
            return dict(value)
    return value
