"""HTTP views of the Table API: service document, $metadata, a table, the number of its rows (spec 11, 11.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import orjson
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from audit.record import note
from domain.odata.http.views import http_response, lower_headers
from domain.odata.message.message import JSON, TEXT, XML, negotiate, version_of_refusal
from domain.odata.metadata.model_documents import Document, document_response
from domain.odata.read.as_of import at_time
from domain.odata.service.current_model import with_current_model
from domain.query.base.representation import MetadataLevel
from domain.query.run.execute import known_error
from domain.syntax import parse_query_options
from domain.syntax.ast import NameStep, QueryOptions
from domain.table_api import planning
from domain.table_api.authentication import CHALLENGE, TableAuthentication, has_same_rights
from domain.table_api.catalogue import Table, tables
from domain.table_api.compression import coding_for
from domain.table_api.deltas import delta_json, tracking_base
from domain.table_api.formats import FORMATS, Format
from domain.table_api.metadata import metadata_xml, service_document
from domain.table_api.rows import TableRows
from domain.table_api.streams import Body
from domain.table_api.table_query import TableQuery
from domain.table_api.table_request import TableRequest
from domain.table_api.translation import unknown_table
from foundation import errors
from foundation.messages import TranslatableMessage as Message
from foundation.short_texts import cache_short_texts
from foundation.streamed_responses import PipedResponse
from foundation.wsgi import on_disconnect
from identity.audit_actors import actor_of_call
from identity.audit_kinds import DataExported
from identity.authentication import require_scope_of
from identity.context import CallContext
from identity.instance import base_url
from identity.rest import context_of
from identity.rest_views import PlatformView

_BY_NAME = {form.name: form for form in FORMATS}
_BY_MEDIA_TYPE = {form.media_type: form for form in FORMATS}
_PAGING = frozenset({"skip", "skiptoken", "deltatoken"})
_PAGE_DIGITS = 9


class TableView(PlatformView):
    """Base of the views of the Table API, which is read-only."""

    http_method_names = ["get", "head", "options"]
    authentication_classes = (TableAuthentication,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the caller and the scope."""
        super().initial(request, *args, **kwargs)
        require_scope_of(context_of(request).scopes, "read")

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """204 with Allow (RFC 9110, 9.3.7)."""
        if "table" in kwargs:
            with_current_model(lambda: _table(kwargs["table"]))
        return Response(status=204)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Set OData-Version."""
        result = super().finalize_response(request, response, *args, **kwargs)
        result.headers.setdefault("OData-Version", version_of_refusal(lower_headers(request._request)))
        return result

    def handle_exception(self, exc: Exception) -> Any:
        """The OData error response; a 401 also offers HTTP Basic."""
        response = super().handle_exception(exc)
        if response.status_code == 401:
            response.headers["WWW-Authenticate"] = CHALLENGE
        return response


class ServiceDocumentView(TableView):
    """The tables that the caller may read."""

    def get(self, request: Request, root: str) -> HttpResponse:
        """The document as JSON."""
        options = _options(request)
        negotiate(_accept(request), options.format, (JSON,))
        document = service_document(_readable(request), _service_root(request, root))
        return HttpResponse(orjson.dumps(document), content_type=JSON)


class MetadataView(TableView):
    """The schema of the tables that the caller may read."""

    def get(self, request: Request, root: str) -> HttpResponse:
        """CSDL XML; 304 for a matching ETag."""
        options = _options(request)
        negotiate(_accept(request), options.format, (XML,))
        document = Document(metadata_xml(_readable(request)))
        response = http_response(document_response(document, XML, lower_headers(request._request)))
        response.headers["OData-Version"] = "4.0"
        return response


class CountView(TableView):
    """The number of rows that match."""

    def get(self, request: Request, root: str, table: str) -> HttpResponse:
        """The number as text."""
        options = _options(request)
        context = at_time(context_of(request), options.at)
        number = with_current_model(lambda: planning.count(_table(table), options, context))
        return HttpResponse(str(number), content_type=f"{TEXT};charset=utf-8")


class RowsView(TableView):
    """The rows of a table, or their changes since a $deltatoken."""

    def get(self, request: Request, root: str, table: str) -> HttpResponse | PipedResponse:
        """A short body as a whole, a long one as a stream."""
        asked = _asked(request, root, table)
        if asked.options.deltatoken is not None and asked.options.skiptoken is None:
            body = with_current_model(lambda: delta_json(_table(table), asked))
            return HttpResponse(body, headers=asked.headers)
        query = with_current_model(lambda: _planned(_table(table), asked))
        headers = {**asked.headers, **_paging_headers(query, asked.size)}
        if request.method == "HEAD":
            return HttpResponse(headers=headers)
        note(
            DataExported,
            by=actor_of_call(context_of(request)),
            subject=table,
            format=asked.form.name,
            query=request.META.get("QUERY_STRING", "")[:500],
        )
        made = _body(asked.form, query, request)
        if made.is_whole:
            return HttpResponse(b"".join(made), headers=headers)
        if made.coding:
            headers["Content-Encoding"] = made.coding
        return PipedResponse(made, headers=headers)


class NothingView(TableView):
    """Unknown URLs below a root."""

    def get(self, request: Request, root: str, **kwargs: str) -> HttpResponse:
        """Raises NotFound."""
        raise unknown_table(request.path)


def _options(request: Request) -> QueryOptions:
    return _parsed(request.META.get("QUERY_STRING", ""))


@cache_short_texts(512, longest=1024)
def _parsed(raw: str) -> QueryOptions:
    return parse_query_options(raw, plus_is_space=True)


def _accept(request: Request) -> str:
    return str(request.META.get("HTTP_ACCEPT", ""))


def _negotiated(request: Request, options: QueryOptions) -> tuple[Format, MetadataLevel]:
    """The format by $format, which may be its name, or Accept, and the metadata level of JSON. Raises NotAcceptable."""
    asked = options.format
    if asked is not None:
        asked = _BY_NAME[asked.lower()].media_type if asked.lower() in _BY_NAME else asked
    negotiated = negotiate(_accept(request), asked, tuple(_BY_MEDIA_TYPE))
    return _BY_MEDIA_TYPE[negotiated.media_type], negotiated.metadata


def _asked(request: Request, root: str, table: str) -> TableRequest:
    options = _options(request)
    context = at_time(context_of(request), options.at)
    form, metadata = _negotiated(request, options)
    service, name = _service_root(request, root), _table(table).name
    if options.deltatoken is not None and options.at is not None:
        raise errors.NotSupported(Message("change tracking with {0}", "$at"), target="$deltatoken")
    if options.deltatoken is not None and form.media_type != JSON:
        raise errors.NotSupported(Message("change tracking with {0}", f"$format={form.name}"), target="$deltatoken")
    return TableRequest(
        options=options,
        context=context,
        form=form,
        size=_page_size(context),
        base=_base(f"{service}{table}", request._request),
        metadata="" if metadata == "none" else f"{service}$metadata#{name}{_selected(options)}",
        version=version_of_refusal(lower_headers(request._request)),
        headers=_described(form, metadata, table=name),
    )


def _planned(table: Table, asked: TableRequest) -> TableQuery:
    tracking = tracking_base(table, asked) if asked.form.media_type == JSON else None
    paging = planning.Paging(asked.size, tracking or asked.base)
    untracked = replace(asked.options, deltatoken=None)
    query = planning.plan(table, untracked, asked.context, context=asked.metadata, paging=paging)
    return query if query.next_link or tracking is None else replace(query, delta_link=tracking)


def _described(form: Format, metadata: MetadataLevel, *, table: str) -> dict[str, str]:
    """The headers that describe the format; browsers save formats other than JSON as a file."""
    if form.media_type == JSON:
        return {"Content-Type": f"{JSON};odata.metadata={metadata}"}
    parameters = ";charset=utf-8;header=present" if form.media_type == "text/csv" else ""
    return {
        "Content-Type": form.media_type + parameters,
        "Content-Disposition": f'attachment; filename="{table}.{form.ending}"',
    }


def _paging_headers(query: TableQuery, size: int | None) -> dict[str, str]:
    applied = [] if size is None else [f"odata.maxpagesize={size}"]
    if query.delta_link or "$deltatoken=" in query.next_link:
        applied.append("odata.track-changes")
    headers = {"Preference-Applied": ", ".join(applied)} if applied else {}
    return headers | ({"Link": f'<{query.next_link}>; rel="next"'} if query.next_link else {})


def _body(form: Format, query: TableQuery, request: Request) -> Body:
    coding = "" if form.is_compressed else coding_for(request.META.get("HTTP_ACCEPT_ENCODING", ""))
    try:
        rows = TableRows(query, session_id=context_of(request).session_id)
    except DatabaseError as exc:
        raise known_error(exc) from exc
    context = context_of(request)
    return Body(
        query,
        rows,
        form,
        coding=coding,
        caller=context.user_id,
        may_go_on=lambda: has_same_rights(request._request, context),
        on_close=on_disconnect(request.META, rows.cancel),
    )


def _service_root(request: Request, root: str) -> str:
    return f"{base_url(request._request)}{root}"


def _table(name: str) -> Table:
    table = tables().get(name.lower())
    if table is None:
        raise unknown_table(name)
    return table


def _readable(request: Request) -> list[Table]:
    context = context_of(request)
    return with_current_model(lambda: [each for each in tables().values() if planning.readable(each, context)])


def _selected(options: QueryOptions) -> str:
    """The select list of the context URL (OData Protocol 4.01, 10.7)."""
    names = [step.name for item in options.select for step in item.path if isinstance(step, NameStep)]
    return f"({','.join(names)})" if names else ""


def _page_size(context: CallContext) -> int | None:
    """odata.maxpagesize; None without a usable one."""
    raw = context.prefer.get("odata.maxpagesize", context.prefer.get("maxpagesize", ""))
    return (int(raw[:_PAGE_DIGITS]) or None) if raw.isascii() and raw.isdigit() else None


def _base(address: str, request: HttpRequest) -> str:
    """The URL with the query options except those of paging."""
    raw: str = request.META.get("QUERY_STRING", "")
    options = [
        (name, value)
        for name, value in parse_qsl(raw, keep_blank_values=True)
        if name.lower().lstrip("$") not in _PAGING
    ]
    return f"{address}?{urlencode(options, safe='$(),/:@', quote_via=quote)}" if options else address
