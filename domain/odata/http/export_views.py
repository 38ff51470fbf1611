"""Exports of the entities of a set as files that Import takes, and templates of such files (spec 11, 11.2)."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from itertools import islice
from typing import IO
from urllib.parse import unquote_plus, urlsplit

import orjson
from django.conf import settings
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from audit.record import note
from domain.model.naming import near
from domain.model.registry import repositories
from domain.odata.http.views import http_response, service_root
from domain.odata.message.message import ODataResponse, ReceivedRequest
from domain.odata.service import handler
from domain.odata.service.current_model import with_current_model
from domain.odata.sheets.exporting import KINDS, checked_names, count_export, importable, rows_of, write_export
from domain.query.base.access import Access
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.streamed_responses import TemporaryFileResponse
from identity.audit_actors import actor_of_call
from identity.audit_kinds import DataExported
from identity.authentication import require_scope_of
from identity.context import CallContext
from identity.rest import context_of
from identity.rest_views import PlatformView

#: Options that select columns or have no meaning for a file; the others select rows.
_NOT_OF_ROWS = frozenset({"select", "expand", "count", "format", "template"})
_SEPARATOR = re.compile("&(?=(?:[^']*'[^']*')*[^']*$)")


class Export(PlatformView):
    """`/api/export/Crm_Sales_Customers.xlsx` with the query options of the set; `?template` gives the headers only."""

    http_method_names = ["get"]

    def get(self, request: Request, set_name: str, kind: str) -> HttpResponseBase:
        """The file. Columns: $select with paths such as Customer.Number, else all attributes that can be set."""
        context = context_of(request)
        require_scope_of(context.scopes, "read")
        query, root = request.META.get("QUERY_STRING", ""), service_root(request._request)
        return with_current_model(lambda: _exported(context, set_name, kind, query, root))


def _exported(context: CallContext, set_name: str, kind: str, query: str, root: str) -> HttpResponseBase:
    found = repositories.for_set(set_name)
    if found is None:
        raise errors.BadRequest(errors.UNKNOWN_SET, set_name, near(set_name, [each.set_name for each in repositories]))
    repository = found[0]
    Access(context.permissions).check_readable(repository)
    options = [option for option in _SEPARATOR.split(query) if option]
    selected = next((unquote_plus(each.partition("=")[2]) for each in options if _name(each) == "select"), "")
    names = checked_names(repository, selected.split(",")) if selected else importable(repository, context)
    ids: list[str] = []
    if "template" not in map(_name, options):
        if "apply" in map(_name, options):
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$apply", Message("an export has entities, no groups"))
        asked = "&".join([*(each for each in options if _name(each) not in _NOT_OF_ROWS), "$select=Id"])
        try:
            ids = list(islice(_ids(context, set_name, asked, root), settings.EXPORT_ROWS + 1))
        except _Refused as refused:
            return http_response(refused.response)
        _check(context, len(ids))
    file: IO[bytes] = tempfile.NamedTemporaryFile(prefix="export-")  # noqa: SIM115  (closed when it has been sent)
    write_export(file, kind, repository, names, rows_of(context, repository, names, ids))
    actor = actor_of_call(context)
    note(DataExported, by=actor, subject=repository.name, rows=len(ids), format=kind, query=query[:500])
    # The import takes the repository of a CSV file from the file's name.
    return TemporaryFileResponse(file, filename=f"{repository.set_name}.{kind}", content_type=KINDS[kind])


def _name(option: str) -> str:
    return unquote_plus(option.partition("=")[0]).strip().lower().removeprefix("$")


class _Refused(Exception):
    """Carries the error response with which the API refused the query."""

    def __init__(self, response: ODataResponse) -> None:
        super().__init__(response.status)
        self.response = response


def _ids(context: CallContext, set_name: str, query: str, root: str) -> Iterator[str]:
    """The keys of the rows that the query selects, read page by page through the OData service. Raises _Refused."""
    context = context.with_(prefer={"odata.maxpagesize": str(settings.PAGE_SIZE_MAX)}, top_paging=False)
    headers = {"accept": "application/json;odata.metadata=none"}
    while True:
        response = handler.handle(ReceivedRequest("GET", set_name, query, headers, b"", context, root))
        if response.status != 200:
            raise _Refused(response)
        page = orjson.loads(response.body)
        yield from (row["Id"] for row in page["value"])
        if "@odata.nextLink" not in page:
            return
        query = urlsplit(page["@odata.nextLink"]).query


def _check(context: CallContext, rows: int) -> None:
    limit: int = settings.EXPORT_ROWS
    if rows > limit:
        raise errors.BadRequest(
            errors.QUERY_TOO_LARGE, Message("an export has at most {0} rows; narrow it down by a filter", limit)
        )
    user = context.user_id or context.application
    try:
        count_export(user, rows)
    except errors.TooManyRequests as limited:
        seconds = limited.retry_after_seconds or 1
        raise errors.TooManyRequests(seconds, retry_after_seconds=seconds, code=errors.EXPORTS_LIMITED) from limited
