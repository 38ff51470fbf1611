"""The Import action (spec 03, 3.4; spreadsheets: spec 11, 11.2)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qsl

import orjson
from django.utils.translation import gettext

from domain.model.registry import repositories
from domain.odata.invoke.importing import ImportOptions, ImportSummary, import_objects, read_options
from domain.odata.message.json_body import invalid_body
from domain.odata.message.json_stream import JsonObjectFile
from domain.odata.message.references import reference_path
from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, operations
from domain.odata.sheets.mapping import FileMapping, read_mapping
from domain.odata.sheets.saved import saved_mapping_get
from domain.odata.sheets.source import KINDS, BoundSheet, SheetSource, UnboundSheet
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import translated
from identity.context import CallContext

JSON = "application/json"
#: Rows of a preview: at most, and unless the caller says how many.
MOST_PREVIEWED, PREVIEWED = 200, 20
#: Options of a spreadsheet, whose body has no place for them, in the query string.
_IN_QUERY = ("transaction", "model", "loggingLevel", "mapping", "repository", "preview", "offset", "limit")


@operations.register
class Import(Operation):
    """Create, change and delete many objects."""

    name = "Import"
    scope = "update"
    parameters = (
        Parameter("transaction", optional=True, default="per-object"),
        Parameter("model", optional=True, default="frontend"),
        Parameter("loggingLevel", "Edm.Int32", optional=True, default=2),
        Parameter("objects", "Collection(Edm.Untyped)"),
    )
    returns = "Erp.OpenObject"
    commits = False
    raw_body = True

    def run(self, call: OperationCall) -> Result:
        """{"@erpnet.result", "objects": […], "data-exchange"?} in input order.

        Of a spreadsheet, answers of refused rows have `@erpnet.source`: sheet, row and cells. With `preview` nothing is
        imported: {"@erpnet.result", "sheets": […], "objects": […]}, the answers of the first rows.
        """
        if call.transaction_id is not None:
            raise invalid_body(Message("Import has transactions of its own; send no TransactionId"))
        media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
        file = call.body_file or cast(BinaryIO, io.BytesIO(call.body))
        if media in KINDS:
            given = {name: value for name, value in parse_qsl(call.query) if name in _IN_QUERY}
            return _import_sheets(call.context, SheetSource(file, KINDS[media], _mapping(call.context, given)), given)
        if media not in (JSON, ""):
            raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, ", ".join((JSON, *KINDS)), media)
        source = JsonObjectFile(file, "objects")
        options = read_options(source.members())
        summary = ImportSummary()
        return _answered(import_objects(call.context, source.elements(), options, summary), summary)


def _answered(answers: Iterator[dict[str, Any]], summary: ImportSummary, **members: Any) -> Result:
    # One buffer: the result precedes the objects in the body, but is known only after them.
    written = bytearray(b"[")
    for answer in answers:
        written += orjson.dumps(answer)
        written += b","
    written[max(1, len(written) - 1) :] = b"]"
    body = {"@erpnet.result": summary.result, **members, "objects": orjson.Fragment(bytes(written))}
    if summary.exchange is not None:
        body["data-exchange"] = reference_path(repositories["Systems.Exchange.DataExchanges"], summary.exchange)
    return Result(body, is_object=True, error=summary.error, failed_parts=summary.failed)


# --- spreadsheets -------------------------------------------------------------------------------------------------


def _import_sheets(context: CallContext, source: SheetSource, given: Mapping[str, str]) -> Result:
    options = _options(given)
    summary = ImportSummary()
    offset, limit = _number(given, "offset") or 0, _number(given, "limit")
    if "preview" not in given:
        source.check()
        return _answered(import_sheets(context, source, options, summary, offset=offset, limit=limit), summary)
    preview = PREVIEWED if (number := _number(given, "preview")) is None else min(number, MOST_PREVIEWED)
    if unbound := source.unbound():
        return Result(
            {"@erpnet.result": "fail", "sheets": [_unbound(each) for each in unbound], "objects": []}, is_object=True
        )
    rows = source.count()
    answers = import_sheets(context, source, replace(options, rolled_back=True), summary, offset=offset, limit=preview)
    return _answered(answers, summary, rows=rows, sheets=[described(sheet) for sheet in source.sheets])


def import_sheets(
    context: CallContext,
    source: SheetSource,
    options: ImportOptions,
    summary: ImportSummary,
    *,
    offset: int = 0,
    limit: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Import the rows, or `limit` of them behind the first `offset`; yields an answer for each, in order.

    Answers of refused rows, and all of a dry run, say where the row is and what it holds. The file is read a second
    time beside the answers, which in all-objects mode come after all rows.
    """
    end = None if limit is None else offset + limit
    bodies, rows = islice(source.bodies(), offset, end), islice(source.rows(), offset, end)
    for answer, (sheet, row) in zip(import_objects(context, bodies, options, summary), rows, strict=False):
        if options.rolled_back or answer["@erpnet.result"] == "fail":
            cells = sheet.cells(row)
            answer["@erpnet.source"] = {"sheet": sheet.sheet.name, "row": row.number, "cells": cells}
        yield answer


def described(sheet: BoundSheet) -> dict[str, Any]:
    """A sheet of a preview: what each column sets, or why it sets nothing."""
    paths = {column.header: column.path for column in sheet.columns}
    return {
        "name": sheet.sheet.name,
        "repository": sheet.repository.set_name,
        "key": sheet.key,
        "columns": [
            {"header": header, "attribute": paths.get(header)}
            | ({"problem": _reason(sheet.problems[header])} if header in sheet.problems else {})
            for header in sheet.headers
        ],
    }


def _unbound(sheet: UnboundSheet) -> dict[str, Any]:
    columns = [{"header": header, "attribute": None} for header in sheet.headers]
    return {"name": sheet.sheet.name, "repository": None, "problem": _reason(sheet.problem), "columns": columns}


def _reason(problem: errors.PlatformError) -> str:
    """The message; of "The body cannot be used: sheet …" what comes behind the colon, as people sent a file."""
    if problem.code is errors.INVALID_BODY:
        return translated(problem.parameters[0], gettext)
    return problem.message


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None or (text.isascii() and text.isdecimal() and len(text) < 10):
        return None if text is None else int(text)
    raise errors.BadRequest(errors.INVALID_LITERAL, text, "Edm.Int32", name, target=name)


def _mapping(context: CallContext, given: Mapping[str, str]) -> FileMapping:
    """The mapping in the query string: JSON, or the name of a saved one. `repository` is that of sheets without one."""
    text = given.get("mapping", "{}")
    if text.startswith("{"):
        try:
            mapping = read_mapping(orjson.loads(text))
        except orjson.JSONDecodeError as exc:
            raise errors.BadRequest(errors.INVALID_LITERAL, text, "JSON", "mapping", target="mapping") from exc
    else:
        mapping = saved_mapping_get(context.user.id if context.user is not None else None, text)
    repository = given.get("repository")
    if repository is None or mapping.others.repository is not None:
        return mapping
    return replace(mapping, others=replace(mapping.others, repository=repository))


def _options(given: Mapping[str, str]) -> ImportOptions:
    members: dict[str, Any] = {name: given[name] for name in ("transaction", "model") if name in given}
    level = given.get("loggingLevel")
    if level is not None:
        members["loggingLevel"] = int(level) if level in ("0", "1", "2") else level
    return read_options({**members, "objects": 0})
