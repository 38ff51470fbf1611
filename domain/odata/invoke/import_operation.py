"""The Import action (spec 03, 3.4; spreadsheets: spec 11, 11.2)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import PurePath
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qsl

import orjson
from django.utils.translation import gettext

from domain.model.registry import repositories
from domain.odata.invoke.importing import ImportOptions, ImportSummary, import_objects, read_options
from domain.odata.message.form_data import FORM, read_form
from domain.odata.message.json_body import invalid_body
from domain.odata.message.json_stream import JsonObjectFile
from domain.odata.message.references import reference_path
from domain.odata.operations.catalogue import Operation, OperationCall, Parameter, Result, operations
from domain.odata.sheets.mapping import FileMapping, read_mapping
from domain.odata.sheets.saved import MOST_BYTES, saved_mapping_get
from domain.odata.sheets.source import KINDS, BoundSheet, SheetSource, UnboundSheet
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.messages import translated
from identity.context import CallContext

JSON = "application/json"
#: Rows of a preview: maximum and default.
MOST_PREVIEWED, PREVIEWED = 200, 20
#: Maximum of objects of an import, whose results are kept in memory, and of bytes of results with all details.
MOST_OBJECTS, MOST_DETAILED = 300_000, 32 * 1024 * 1024
_DRY_RUN = "Prefer: erpnet.dry-run"
#: Options of a spreadsheet: fields of the form that has the file, or in the query string.
_OPTIONS = ("transaction", "model", "loggingLevel", "mapping", "repository", "preview", "offset", "limit")


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

        A spreadsheet is the body, or the field `file` of a form. Answers of its rows have `@erpnet.source`: sheet, row
        and, where a row is refused, cells. With `preview`, even an empty one, nothing is imported:
        {"@erpnet.result", "sheets": […], "objects": […]}, the answers of the first rows.
        """
        if call.transaction_id is not None:
            raise invalid_body(Message("Import has transactions of its own; send no TransactionId"))
        media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
        file = call.body_file or cast(BinaryIO, io.BytesIO(call.body))
        given = dict(parse_qsl(call.query, keep_blank_values=True))
        if media in KINDS or media == FORM:
            if media == FORM:
                file, media, fields = _of_form(file, call.headers["content-type"])
                given.update(fields)
            # An empty field counts as missing, except `preview`: a request for a preview must never import.
            given = {name: value for name, value in given.items() if name in _OPTIONS and (value or name == "preview")}
            return _import_sheets(call, SheetSource(file, KINDS[media], _mapping(call.context, given)), given)
        if media not in (JSON, ""):
            raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, ", ".join((JSON, *KINDS, FORM)), media)
        if "preview" in given:
            raise errors.BadRequest(
                errors.BAD_QUERY_OPTION,
                "preview",
                Message("previews are of spreadsheets; objects in JSON are tried with the header {0}", _DRY_RUN),
                target="preview",
            )
        source = JsonObjectFile(file, "objects")
        members = source.members()
        options = read_options(members)
        _check_count(members["objects"])
        summary = ImportSummary()
        return _answered(call, import_objects(call.context, source.elements(), options, summary), summary)


def _of_form(body: BinaryIO, content_type: str) -> tuple[BinaryIO, str, dict[str, str]]:
    """The spreadsheet in a form, its media type, and the fields. A mapping may be a file, too."""
    fields, files = read_form(body, content_type)
    sheet, mapping = files.get("file"), files.get("mapping")
    if sheet is None:
        raise invalid_body(Message("the form has no file in the field {0}", "file"), target="file")
    media = kind_of(str(sheet.name), str(sheet.content_type))
    given = {name: str(value) for name, value in fields.items()}
    if mapping is not None:
        given["mapping"] = mapping.read(MOST_BYTES + 1).decode("utf-8-sig", "replace")
    return cast(BinaryIO, sheet.file), media, given


def kind_of(name: str, media: str) -> str:
    """The media type of a form's file, by its declared type or its extension. Raises UnsupportedMediaType."""
    if media in KINDS:
        return media
    ending = PurePath(name).suffix.removeprefix(".").lower()
    for known, kind in KINDS.items():
        if kind == ending:
            return known
    raise errors.UnsupportedMediaType(errors.UNSUPPORTED_MEDIA_TYPE, ", ".join(KINDS), media)


def _check_count(objects: int) -> None:
    """Raise PayloadTooLarge, before anything is changed, for more than MOST_OBJECTS objects or rows."""
    if objects > MOST_OBJECTS:
        raise errors.PayloadTooLarge(errors.TOO_MANY_OBJECTS, MOST_OBJECTS)


def _answered(call: OperationCall, answers: Iterator[dict[str, Any]], summary: ImportSummary, **members: Any) -> Result:
    # The objects are buffered, because `@erpnet.result` precedes them in the body and is known only after them.
    written = bytearray(b"[")
    for answer in answers:
        if len(written) > MOST_DETAILED:
            _shorten(answer)
        written += orjson.dumps(answer)
        written += b","
    written[max(1, len(written) - 1) :] = b"]"
    call.dataset.warnings += summary.warnings
    call.dataset.traces += summary.traces
    body = {"@erpnet.result": summary.result, **members, "objects": orjson.Fragment(bytes(written))}
    if summary.exchange is not None:
        body["data-exchange"] = reference_path(repositories["Systems.Exchange.DataExchanges"], summary.exchange)
    return Result(body, is_object=True, error=summary.error, failed_parts=summary.failed)


def _shorten(answer: dict[str, Any]) -> None:
    """Leave the details of an object out of its result."""
    details = [answer.pop(name, None) for name in ("@erpnet.error", "@erpnet.trace", "@erpnet.message")]
    cells = answer.get("@erpnet.source", {}).pop("cells", None)
    if cells is not None or any(details):
        answer["@erpnet.message"] = gettext(
            "Details are left out, because the answer is too long. Import this object again by itself."
        )


# --- spreadsheets -------------------------------------------------------------------------------------------------


def _import_sheets(call: OperationCall, source: SheetSource, given: Mapping[str, str]) -> Result:
    context, options = call.context, _options(given)
    summary = ImportSummary()
    offset, limit = _number(given, "offset") or 0, _number(given, "limit")
    if "preview" not in given:
        rows = source.check()
        _check_count(max(0, min(rows - offset, rows if limit is None else limit)))
        return _answered(call, import_sheets(context, source, options, summary, offset=offset, limit=limit), summary)
    preview = _previewed(given["preview"])
    found = source.all_sheets()
    sheets = [described(each) if isinstance(each, BoundSheet) else _unbound(each) for each in found]
    if any(isinstance(each, UnboundSheet) and each.problem is not None for each in found):
        return Result({"@erpnet.result": "fail", "sheets": sheets, "objects": []}, is_object=True)
    rows = source.count()
    answers = import_sheets(context, source, replace(options, rolled_back=True), summary, offset=offset, limit=preview)
    return _answered(call, answers, summary, rows=rows, sheets=sheets)


def import_sheets(
    context: CallContext,
    source: SheetSource,
    options: ImportOptions,
    summary: ImportSummary,
    *,
    offset: int = 0,
    limit: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Import the rows, or `limit` of them after the first `offset`; yields a result for each, in order.

    Answers say where the row is; of refused rows, and all of a preview, what it holds, too. The file is read a second
    time beside the answers, which in all-objects mode come after all rows.
    """
    end = None if limit is None else offset + limit
    bodies, rows = islice(source.bodies(), offset, end), islice(source.rows(), offset, end)
    for answer, (sheet, row) in zip(import_objects(context, bodies, options, summary), rows, strict=False):
        answer["@erpnet.source"] = {"sheet": sheet.sheet.name, "row": row.number}
        if options.rolled_back or answer["@erpnet.result"] == "fail":
            answer["@erpnet.source"]["cells"] = sheet.cells(row)
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
    problem = {"isLeftOut": True} if sheet.problem is None else {"problem": _reason(sheet.problem)}
    return {"name": sheet.sheet.name, "repository": None, "columns": columns, **problem}


def _reason(problem: errors.PlatformError) -> str:
    """The message; of INVALID_BODY only the reason, without "The body cannot be used", since people sent a file."""
    if problem.code is errors.INVALID_BODY:
        return translated(problem.parameters[0], gettext)
    return problem.message


def _previewed(text: str) -> int:
    """The number of rows of a preview. Raises BadRequest unless it is a number from 1 to MOST_PREVIEWED."""
    number = _number({"preview": text}, "preview") if text else PREVIEWED
    if number is None or not 1 <= number <= MOST_PREVIEWED:
        raise errors.BadRequest(
            errors.BAD_QUERY_OPTION,
            "preview",
            Message("1 to {0} rows, not {1}", MOST_PREVIEWED, text),
            target="preview",
        )
    return number


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None or (text.isascii() and text.isdecimal() and len(text) < 10):
        return None if text is None else int(text)
    raise errors.BadRequest(errors.INVALID_LITERAL, text, "Edm.Int32", name, target=name)


def _mapping(context: CallContext, given: Mapping[str, str]) -> FileMapping:
    """The mapping: JSON, or the name of a saved one. `repository` applies to sheets without one in the mapping."""
    text = given.get("mapping", "{}")
    if text.startswith("{"):
        try:
            mapping = read_mapping(orjson.loads(text))
        except orjson.JSONDecodeError as exc:
            raise errors.BadRequest(errors.INVALID_LITERAL, text, "JSON", "mapping", target="mapping") from exc
    else:
        mapping = saved_mapping_get(context.user_id or None, text)
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
