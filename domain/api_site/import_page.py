"""The spreadsheet part of the import page: the mapping as a form, and a preview of the first rows (spec 11, 11.2).

The page sends the file with the form after each change; the response is the updated form. Fields of the form:

    file                 the spreadsheet; without it only saved mappings are shown
    mapping              the mapping as JSON (domain.odata.sheets.mapping), "" for none
    model                of Import: the model, which decides on the calculations of a preview
    sheet-0, set-0, include-0, header-0-3, column-0-3
                         the fields of a sheet and of a column, numbered in the order of the file
    empty                the effect of an empty cell
    saved, saved-name, saved-shared
                         the chosen mapping's id, and name and kind of the one to save
    do                   the actions, run in order: the name of a changed field, leave-0-3, save or delete
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, BinaryIO, cast
from urllib.parse import urlencode
from uuid import UUID

import orjson
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.formats import number_format
from django.utils.translation import gettext
from rest_framework.request import Request

from domain.api_site.texts import page_texts
from domain.model.registry import repositories
from domain.model.saved_settings import NAME_CHARACTERS, SavedMapping, setting_delete, settings_list
from domain.odata.http.views import FileParser, http_response, lower_headers, service_root
from domain.odata.invoke.import_operation import PREVIEWED, kind_of
from domain.odata.message.form_data import read_form
from domain.odata.message.message import ODataResponse, ReceivedRequest
from domain.odata.service import handler
from domain.odata.sheets.exporting import importable
from domain.odata.sheets.mapping import COPY
from domain.odata.sheets.saved import saved_mapping_save
from domain.odata.sheets.source import KINDS
from foundation import errors
from foundation.browser_pages import BrowserPage
from foundation.messages import TranslatableMessage as Message
from identity.authentication import require_scope_of
from identity.context import CallContext
from identity.models import User
from identity.rest import context_of
from identity.rest_views import PlatformView

_MOST_COLUMNS_SHOWN = 50


class ImportPart(PlatformView, BrowserPage):
    """The updated form. Also saves, loads and deletes mappings of the token's user."""

    http_method_names = ["post"]
    parser_classes = (FileParser,)

    def post(self, request: Request) -> HttpResponse:
        """Raises BadRequest for an invalid form, and the errors of saved mappings."""
        context = context_of(request)
        require_scope_of(context.scopes, "update")
        with cast(BinaryIO, request.data) as body:
            form, files = read_form(body, request.META.get("CONTENT_TYPE", ""))
            values: dict[str, Any] = {"most_characters": NAME_CHARACTERS}
            mapping = _edited(form, values)
            if context.user is not None:
                mapping = _saved(form, User.objects.get(pk=context.user.id), mapping, values)
            file = files.get("file")
            if file is not None:
                media = kind_of(str(file.name), str(file.content_type))
                if KINDS[media] == "csv":
                    _name_after_file(mapping, str(file.name))
                response = _previewed(request._request, context, cast(BinaryIO, file.file), media, mapping, form)
                answer = orjson.loads(response.body)
                if response.status >= 400:
                    return http_response(response)
                values |= _shown(context, answer, mapping, is_csv=KINDS[media] == "csv", name=str(file.name))
        values |= {"mapping": orjson.dumps(mapping).decode(), "clears": mapping.get("empty") == "clear"}
        return render(request._request, "domain/api_site/_import.html", values)


def _previewed(
    request: HttpRequest, context: CallContext, file: BinaryIO, media: str, mapping: dict[str, Any], form: QueryDict
) -> ODataResponse:
    """The service's response to an import of the file as a preview."""
    options = {"preview": PREVIEWED, "model": form.get("model", "frontend"), "mapping": orjson.dumps(mapping).decode()}
    return handler.handle(
        ReceivedRequest(
            method="POST",
            path="Import",
            query=urlencode(options),
            headers={**lower_headers(request), "content-type": media, "accept": "application/json"},
            body=b"",
            context=context,
            service_root=service_root(request),
            body_file=file,
        )
    )


# --- the mapping ----------------------------------------------------------------------------------------------------


def _edited(form: QueryDict, values: dict[str, Any]) -> dict[str, Any]:
    """The mapping with the changes of the form's fields."""
    text = form.get("mapping") or "{}"
    try:
        mapping = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise errors.BadRequest(errors.INVALID_JSON, str(exc), target="mapping") from exc
    if not isinstance(mapping, dict):
        raise errors.BadRequest(errors.INVALID_BODY, Message("{0} must be an object", "mapping"), target="mapping")
    for action in form.getlist("do"):
        field, _, place = action.partition("-")
        sheet, _, column = place.partition("-")
        name = form.get(f"sheet-{sheet}", "")
        if field == "empty":
            mapping["empty"] = form.get("empty", "keep")
        elif field == "include":
            sheets = _member(mapping, "sheets")
            sheets[name] = None
            if form.get(action):
                del sheets[name]
        elif field == "set":
            part = _part(mapping, name)
            part.pop("columns", None)
            part["repository"] = form.get(action, "").strip()
            if not part["repository"]:
                del part["repository"]
        elif field in ("column", "leave"):
            part = _part(mapping, name)
            part.setdefault("repository", form.get(f"set-{sheet}", "").strip())
            attribute = form.get(action, "").strip() if field == "column" else ""
            _member(part, "columns")[form.get(f"header-{sheet}-{column}", "")] = attribute or None
    return mapping


def _part(mapping: dict[str, Any], sheet: str) -> dict[str, Any]:
    """The part of the mapping for a sheet; for a CSV file, whose sheet has no name, the mapping itself."""
    return _member(_member(mapping, "sheets"), sheet) if sheet else mapping


def _member(mapping: dict[str, Any], name: str) -> dict[str, Any]:
    """The member object with this name, created if it is missing."""
    if not isinstance(mapping.get(name), dict):
        mapping[name] = {}
    return cast(dict[str, Any], mapping[name])


def _name_after_file(mapping: dict[str, Any], file: str) -> None:
    """Set the mapping's repository to the set that a CSV file is named after, unless the mapping has one."""
    found = repositories.for_set(COPY.sub("", PurePath(file).stem))
    if "repository" not in mapping and found is not None:
        mapping["repository"] = found[0].set_name


def _saved(form: QueryDict, user: User, mapping: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The mapping after saving, deleting or loading a saved one. Adds the saved mappings to `values`."""
    chosen = form.get("saved", "")
    for action in form.getlist("do"):
        if action == "save":
            name, is_shared = form.get("saved-name", ""), bool(form.get("saved-shared"))
            kept = saved_mapping_save(user=user, name=name, mapping=mapping, is_shared=is_shared)
            chosen, values["told"] = str(kept.id), gettext("Saved.")
        elif action == "delete":
            setting_delete(SavedMapping, user.pk, _guid(chosen))
            chosen, values["told"] = "", gettext("Deleted.")
    known = settings_list(SavedMapping.objects.select_related("user"), user.pk)
    now = next((each for each in known if str(each.id) == chosen), None)
    values |= {
        "saved": [(each, _title(each, user)) for each in known],
        "chosen": now,
        "is_own": now and now.user == user,
    }
    return dict(now.mapping) if now is not None and "saved" in form.getlist("do") else mapping


def _title(mapping: SavedMapping, user: User) -> str:
    if mapping.user != user:
        return f"{mapping.name} ({mapping.user.login})"
    return f"{mapping.name} ({gettext('shared')})" if mapping.is_shared else mapping.name


def _guid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as exc:
        raise errors.NotFound(errors.RESOURCE_NOT_FOUND, text) from exc


# --- what is shown --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ColumnField:
    """A column with its field. value: an attribute's name or path; problem: why it is not imported, "" if it is."""

    header: str
    value: str
    problem: str


@dataclass(frozen=True, slots=True)
class SheetFields:
    """A sheet with its fields. names: of the attributes that columns can set."""

    name: str
    legend: str
    is_left_out: bool
    set_name: str
    names: list[str]
    columns: list[ColumnField]


def _shown(
    context: CallContext, answer: dict[str, Any], mapping: dict[str, Any], *, is_csv: bool, name: str
) -> dict[str, Any]:
    """Values of the template: fields of the sheets, problems, and a table of the first rows."""
    sheets = answer["sheets"]
    problems = [each["problem"] for sheet in sheets for each in (sheet, *sheet["columns"]) if "problem" in each]
    rows = answer.get("rows", 0)
    return {
        "sheets": [_fields(context, sheet, mapping if is_csv else _sheet_of(mapping, sheet), name) for sheet in sheets],
        "problems": problems,
        "rows": rows,
        "rows_read": gettext("Rows read: {count}.").format(count=number_format(rows)),
        "is_ready": rows > 0 and not problems,
        **_table(answer["objects"]),
    }


def _sheet_of(mapping: dict[str, Any], sheet: dict[str, Any]) -> dict[str, Any]:
    return mapping.get("sheets", {}).get(sheet["name"]) or {}


def _fields(context: CallContext, sheet: dict[str, Any], mapping: dict[str, Any], file: str) -> SheetFields:
    found = repositories.for_set(sheet["repository"] or "")
    known = mapping.get("columns", {})
    return SheetFields(
        name=sheet["name"],
        legend=sheet["name"] or file,
        is_left_out=sheet.get("isLeftOut", False),
        set_name=sheet["repository"] or mapping.get("repository", ""),
        names=importable(found[0], context) if found is not None else [],
        columns=[
            ColumnField(
                column["header"],
                column["attribute"] or known.get(column["header"]) or "",
                column.get("problem", ""),
            )
            for column in (sheet["columns"] if found is not None else ())
        ],
    )


def _table(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The preview of the first rows: `headers`, and `lines` of (row, state, whether refused, message, cells)."""
    texts, headers = page_texts(), list[str]()
    states = {name: texts[f"result{name}"] for name in ("Added", "Modified", "Deleted", "Unchanged", "Fail")}
    for answer in answers:
        headers += [each for each in answer["@erpnet.source"]["cells"] if each not in headers]
    shown = headers[:_MOST_COLUMNS_SHOWN]
    lines = list(_lines(answers, states, shown))
    counts = Counter(state for _, state, *_ in lines)
    return {
        "headers": shown,
        "lines": lines,
        "counts": [*counts.items()],
        "has_messages": any(line[3] for line in lines),
    }


def _lines(
    answers: list[dict[str, Any]], states: dict[str, str], headers: list[str]
) -> Iterator[tuple[str, str, bool, str, list[str]]]:
    for answer in answers:
        source, error = answer["@erpnet.source"], answer.get("@erpnet.error")
        state = states["Fail"] if error else states[answer["@erpnet.state"]]
        message = error["message"] if error else answer.get("@erpnet.message", "")
        row = f"{source['sheet']} {source['row']}".strip()
        yield row, state, error is not None, message, [source["cells"].get(header, "") for header in headers]
