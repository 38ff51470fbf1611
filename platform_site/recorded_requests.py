"""Records failed and slow requests, so that an administrator can find them by the request id in the response.

It records requests with a 4xx or 5xx response, batches and imports with a failed part, and requests that took
SLOW_REQUEST_SECONDS. For others the middleware only compares status and time. Rows are written after the request, since
a failed request rolls its transaction back.

Bounds prevent a caller who causes errors from filling the table and displacing the records of others. The rate limits'
counters bound the rows per minute; each caller keeps its newest rows; and when the table is full, the callers with the
most rows lose rows first. Anonymous callers have separate, lower bounds.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import quote

import orjson
from django.conf import settings
from django.core.signals import got_request_exception
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from foundation import errors
from foundation.error_summaries import ErrorSummary, summary_of
from foundation.fields import utc_now
from foundation.per_process import process_name
from foundation.texts import storable
from foundation.write_behind import WriteBehind
from identity.instance import base_url, client_address
from identity.rate_limits import count, counted_as
from platform_site.logging import loggable
from platform_site.models import RecordedRequest

logger = logging.getLogger(__name__)


class _Bounds(NamedTuple):
    """Maximum rows per minute and in the table: of one caller, and of all callers of this kind (0: no limit)."""

    caller_per_minute: int
    per_caller: int
    per_minute: int
    rows: int


KNOWN = _Bounds(caller_per_minute=100, per_caller=1_000, per_minute=0, rows=20_000)
ANONYMOUS = _Bounds(caller_per_minute=20, per_caller=100, per_minute=200, rows=2_000)
#: Prefix of `caller` for anonymous requests; for others it begins with a guid.
_ADDRESS = "address "
#: Number of rows between two counts of all rows by caller, each of which takes some 10 ms.
_ROWS_BETWEEN_CHECKS = 200
#: Maximum rows that wait to be written; the oldest are dropped.
_MOST_WAITING = 1_000
_MOST_CHARACTERS = 2_000
#: Maximum size of an error response of OAuth and SCIM; larger bodies are not parsed.
_MOST_BYTES = 8_192


def _write(rows: Sequence[RecordedRequest]) -> None:
    for row in rows:
        row.pk = None  # set by an attempt that was rolled back
    RecordedRequest.objects.bulk_create(rows)
    for caller in {row.caller for row in rows}:
        bounds = ANONYMOUS if caller.startswith(_ADDRESS) else KNOWN
        _keep_newest(RecordedRequest.objects.filter(caller=caller), bounds.per_caller)
    if any(row.pk % _ROWS_BETWEEN_CHECKS == 0 for row in rows):
        table_trim()


pending: WriteBehind[RecordedRequest] = WriteBehind("recorded requests", _write, limit=_MOST_WAITING)


def record_request(
    request: HttpRequest,
    response: HttpResponseBase,
    *,
    seconds: float = 0.0,
    queries: int = 0,
    error: ErrorSummary | None = None,
) -> None:
    """Record a failed or slow request, within the bounds, and link the response to its record. Never raises.

    error: by default that of the response, or the exception that no view handled
    """
    if not settings.REQUEST_HISTORY_DAYS:
        return
    try:
        row = _row(request, response, seconds, queries, error or _error_of(request, response))
        if _is_within_bounds(row.caller):
            pending.add([row])
            response.headers["Link"] = f'<{_root(request)}{inspector_path(row.request_id)}>; rel="help"'
    except Exception:
        logger.exception("the request cannot be recorded")


def inspector_path(request_id: str) -> str:
    """Path of the admin page with the requests of this id."""
    return f"{reverse('admin:platform_site_recordedrequest_changelist')}?q={quote(request_id)}"


def _row(
    request: HttpRequest, response: HttpResponseBase, seconds: float, queries: int, error: ErrorSummary
) -> RecordedRequest:
    context = getattr(request, "call_context", None)
    # For pages, the user if a middleware or view has loaded it: a record should cost no query.
    user = context.user if context is not None else getattr(request, "_cached_user", None)
    user_id, login = (str(user.id), user.login) if user is not None and user.is_authenticated else ("", "")
    application = context.application if context is not None else ""
    address = client_address(request)
    return RecordedRequest(
        request_id=request.request_id,  # type: ignore[attr-defined]
        at=utc_now() - timedelta(seconds=seconds),
        method=_text(request.method or "", 16),
        path=_text(_path(request)),
        status=response.status_code,
        error_type=_text(error.type, 64),
        error_code=error.code,
        message=_text(error.message),
        failed_parts=getattr(response, "failed_parts", 0),
        duration_ms=round(seconds * 1000, 1),
        queries=queries,
        user_id=user_id,
        user_login=_text(login, 64),
        application=application[:254],
        session_id=context.session_id or "" if context is not None else "",
        client_address=address[:64],
        rule_id=error.rule_id,
        caller=f"{user_id} {application[:254]}" if user_id else f"{_ADDRESS}{counted_as(address)[:64]}",
        process=process_name(),
    )


def _path(request: HttpRequest) -> str:
    """The path; below /api/ with the query string. On pages this may contain search terms, in OAuth codes."""
    query = request.META.get("QUERY_STRING", "")
    return f"{request.path}?{query}" if query and request.path_info.startswith("/api/") else request.path


def _text(text: str, most: int = _MOST_CHARACTERS) -> str:
    """The text in the form of the log, without characters that PostgreSQL cannot store."""
    return storable(loggable(text))[:most]


def _root(request: HttpRequest) -> str:
    try:
        return base_url(request)
    except Exception:  # raised for a host that is not in ALLOWED_HOSTS
        return ""


def _error_of(request: HttpRequest, response: HttpResponseBase) -> ErrorSummary:
    known: ErrorSummary | None = getattr(response, "error_summary", None) or getattr(request, "error_summary", None)
    return known or _stated(response)


def _stated(response: HttpResponseBase) -> ErrorSummary:
    """The error in a response of OAuth (RFC 6749, 5.2) or SCIM (RFC 7644, 3.12); empty for other responses."""
    is_json = response.headers.get("Content-Type", "").partition(";")[0].endswith("json")
    if not is_json or not isinstance(response, HttpResponse) or len(response.content) > _MOST_BYTES:
        return ErrorSummary("")
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return ErrorSummary("")
    if not isinstance(body, dict):
        return ErrorSummary("")
    texts = {name: value for name, value in body.items() if isinstance(value, str)}
    name = texts.get("error") or texts.get("scimType") or ""
    return ErrorSummary(name, message=texts.get("error_description") or texts.get("detail") or "")


def _note_exception(request: HttpRequest | None = None, **_: object) -> None:
    """Signal receiver: store a summary of an unhandled exception on the request, for its record."""
    error = sys.exc_info()[1]
    if request is not None and error is not None:
        request.error_summary = summary_of(error)  # type: ignore[attr-defined]


got_request_exception.connect(_note_exception, dispatch_uid="recorded-requests")


# --- bounds -------------------------------------------------------------------------------------------------------


def _is_within_bounds(caller: str) -> bool:
    bounds = ANONYMOUS if caller.startswith(_ADDRESS) else KNOWN
    try:
        count(f"recorded:{caller}", bounds.caller_per_minute)
        if bounds.per_minute:
            count("recorded:anonymous", bounds.per_minute)
    except errors.TooManyRequests:
        return False
    return True


def table_trim() -> int:
    """Delete the rows beyond the bounds of the table; returns their number."""
    anonymous = RecordedRequest.objects.filter(caller__startswith=_ADDRESS)
    known = RecordedRequest.objects.exclude(caller__startswith=_ADDRESS)
    return _trim(anonymous, ANONYMOUS.rows) + _trim(known, KNOWN.rows)


def _trim(rows: QuerySet[RecordedRequest], most: int) -> int:
    """Delete the oldest rows of the callers that have more than an equal share; returns the number of rows."""
    counts = dict(rows.order_by().values_list("caller").annotate(Count("pk")))
    if sum(counts.values()) <= most:
        return 0
    share = max(1, most // len(counts))
    above = [caller for caller, rows_of_it in counts.items() if rows_of_it > share]
    return sum(_keep_newest(rows.filter(caller=caller), share) for caller in above) + _keep_newest(rows, most)


def _keep_newest(rows: QuerySet[RecordedRequest], most: int) -> int:
    newest_to_go = rows.order_by("-pk").values_list("pk", flat=True)[most : most + 1].first()
    return 0 if newest_to_go is None else rows.filter(pk__lte=newest_to_go).delete()[0]


def recorded_requests_prune() -> int:
    """Delete rows older than REQUEST_HISTORY_DAYS, and those beyond the bounds; returns their number."""
    oldest = utc_now() - timedelta(days=settings.REQUEST_HISTORY_DAYS)
    return RecordedRequest.objects.filter(at__lt=oldest).delete()[0] + table_trim()
