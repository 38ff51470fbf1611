"""Outermost middleware: request id, log and record, and direct calls of API views without the page middleware.

The stack for pages (session, locale, CSRF, messages, clickjacking …) is for browsers with cookies and costs some
0.07 ms of CPU per request. The API uses tokens instead of cookies, so this middleware calls API views itself; there is
still one URL configuration, one WSGI application and one process model.

For API views it checks the host against ALLOWED_HOSTS, sets X-Content-Type-Options, and deactivates the language of the
thread's previous request. A request without TLS to an instance that requires it takes the full stack, where
SecurityMiddleware responds. API views render their own failures (spec 07); this module renders other failures and
unknown URLs in the same format.

A page under /api/ (query tool, import page, model browser) needs cookies and CSRF checks: its view is a BrowserPage.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.core.signals import got_request_exception
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch, URLResolver, get_resolver
from django.utils import translation

from domain.entities.custom_entities.live import follow
from domain.model import model_version
from domain.odata.http.exceptions import failure_response
from domain.odata.message.dry_run_report import DRY_RUN
from foundation import errors, spans
from foundation.browser_pages import BrowserPage
from identity.instance import requested_host
from platform_site.logging import loggable, request_logged_as
from platform_site.metrics import request_counted
from platform_site.recorded_requests import record_request

logger = logging.getLogger("platform.request")

API_PREFIX = "/api/"
_ADMIN = "/admin/"
_SERVICE = "/api/domain/odata/"
_RESET = f"{_SERVICE}reset"
_service_matches: WeakKeyDictionary[URLResolver, ResolverMatch] = WeakKeyDictionary()

# A caller's id is used only if it is short and plain, since it is written to the log and the response.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# W3C Trace Context, 3.2.2: version, trace id, parent id, flags; an all-zero trace or parent id is invalid.
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

# Probes and scrapers send requests every few seconds, which would hide all others in the log.
_QUIET_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})


class QueryCounter:
    """Counts the statements of one request; an execute_wrapper of the database connection.

    `only_counts` lets domain.query.run.execute bypass Django's cursor and count its statements itself.
    """

    __slots__ = ("count",)
    only_counts = True

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        self.count += 1
        return execute(sql, params, many, context)


class PlatformMiddleware:
    """Gives each request an id, logs it, records failed and slow ones, and calls API views directly."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not spans.are_configured() or request.path in _QUIET_PATHS:
            return self._served(request)
        given = request.META.get("HTTP_TRACEPARENT", "")
        with spans.span(request.method or "", kind="SERVER", traceparent=given) as span:
            # Outgoing calls of the request become children of its span.
            request.META["HTTP_TRACEPARENT"] = span.traceparent
            response = self._served(request)
            _describe(span, request, response)
        return response

    def _served(self, request: HttpRequest) -> HttpResponseBase:
        request_id = assign_request_id(request)
        with request_logged_as(request_id):
            response = self._respond(request) if request.path in _QUIET_PATHS else self._measured(request)
        response.headers["X-Request-Id"] = request_id
        return response

    def _measured(self, request: HttpRequest) -> HttpResponseBase:
        counter = QueryCounter()
        started = time.perf_counter()
        # As `connection.execute_wrapper`, without a generator for each request.
        wrappers = connection.execute_wrappers
        wrappers.append(counter)
        try:
            response = self._respond(request)
        finally:
            wrappers.pop()
        seconds = time.perf_counter() - started
        log_request(request, response, seconds=seconds, queries=counter.count)
        request_counted(request, response, seconds=seconds)
        is_notable = response.status_code >= 400 or seconds >= settings.SLOW_REQUEST_SECONDS
        if (is_notable or "error_summary" in vars(response)) and not _is_dry_run(response):
            record_request(request, response, seconds=seconds, queries=counter.count)
        return response

    def _page(self, request: HttpRequest) -> HttpResponseBase:
        """Call the page; retry once if it failed because the definition of a custom entity changed meanwhile."""
        follow()
        response = self.get_response(request)
        if response.status_code == 500 and request.method == "GET" and model_version.has_changed():
            follow()
            response = self.get_response(request)
        return response

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(API_PREFIX):
            if request.path_info.startswith(_ADMIN):
                return self._page(request)
            return self.get_response(request)
        if settings.SECURE_SSL_REDIRECT and not request.is_secure():
            return self.get_response(request)
        # Django keeps the language per thread: without this, a response could be in the language of the thread's
        # previous request. The API chooses its own (spec 02, 2.6).
        translation.deactivate()
        try:
            requested_host(request)
            match = _resolved(get_resolver(getattr(request, "urlconf", None)), request.path_info)
            if not request.path_info.startswith(_SERVICE):
                follow()
            if issubclass(getattr(match.func, "view_class", object), BrowserPage):
                return self.get_response(request)
            request.resolver_match = match
            response = match.func(request, *match.args, **match.kwargs)
            if callable(getattr(response, "render", None)):
                response = response.render()
        except Exception as error:
            response = failure_response(error, request)
            response.headers["Content-Type"], response.headers["Vary"] = "application/json", "Accept-Language, Cookie"
            if response.status_code == 500 and not isinstance(error, errors.PlatformError):
                # As Django's own handler does, for error reporters and the test client.
                got_request_exception.send(sender=PlatformMiddleware, request=request)
        # Django's handler would log each 500 as a server error; most are refusals by rules or validations (spec 07).
        response._has_been_logged = True
        response.headers["X-Content-Type-Options"] = "nosniff"
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        if settings.SECURE_HSTS_SECONDS and request.is_secure():
            response.headers.setdefault("Strict-Transport-Security", f"max-age={settings.SECURE_HSTS_SECONDS}")
        result: HttpResponseBase = response
        return result


def _is_dry_run(response: HttpResponseBase) -> bool:
    """Whether the request was a dry run, which is not recorded."""
    return DRY_RUN in response.headers.get("Preference-Applied", "")


def _describe(span: spans.OpenSpan, request: HttpRequest, response: HttpResponseBase) -> None:
    """Set the request log's fields on the span, by the names of OpenTelemetry's conventions where there are any."""
    caller = getattr(request, "call_context", None)
    route = request.resolver_match.route if request.resolver_match else ""
    span.describe(
        {
            "http.request.method": request.method or "",
            "http.route": route,
            "url.path": loggable(request.path),
            "http.response.status_code": response.status_code,
            "platform.request_id": request.request_id,  # type: ignore[attr-defined]
            "platform.client": caller.application if caller else "",
            "platform.session": caller.session_id if caller else "",
        },
        name=f"{request.method} /{route}",
        failed=response.status_code >= 500,
    )


def _resolved(resolver: URLResolver, path: str) -> ResolverMatch:
    """Resolve a URL path.

    All URLs of the OData service but Reset have one view and no arguments, so the match is cached: resolving took a
    tenth of the time of a keyed read.
    """
    if not path.startswith(_SERVICE) or path.lower().startswith(_RESET):
        return resolver.resolve(path)
    known = _service_matches.get(resolver)
    if known is None:
        known = _service_matches[resolver] = resolver.resolve(_SERVICE)
    return known


def assign_request_id(request: HttpRequest) -> str:
    """Set `request.request_id` and `request.traceparent` ("" without the header); returns the id.

    The id is the caller's X-Request-Id, else the trace id of its traceparent, else a new one, so that the log lines of
    one call chain can be found together.
    """
    traceparent = request.META.get("HTTP_TRACEPARENT", "")
    trace = _TRACEPARENT.fullmatch(traceparent)
    given = request.META.get("HTTP_X_REQUEST_ID", "")
    request_id: str
    if _REQUEST_ID.fullmatch(given):
        request_id = given
    else:
        request_id = trace.group(1) if trace else secrets.token_hex(16)
    request.request_id = request_id  # type: ignore[attr-defined]
    request.traceparent = traceparent if trace else ""  # type: ignore[attr-defined]
    return request_id


def log_request(request: HttpRequest, response: HttpResponseBase, *, seconds: float, queries: int) -> None:
    """Log one line for the request: INFO, WARNING if it was slow. Without the query string, which may contain tokens.

    Client, user and session come from `request.call_context`, which the API views set.
    """
    slow = seconds >= settings.SLOW_REQUEST_SECONDS
    level = logging.WARNING if slow else logging.INFO
    if not logger.isEnabledFor(level):
        return
    caller = getattr(request, "call_context", None)
    logger.log(
        level,
        "%s %s %d",
        request.method,
        request.path,
        response.status_code,
        extra={
            "duration_ms": round(seconds * 1000, 1),
            "queries": queries,
            "client": caller.application if caller else "",
            "user": caller.user.login if caller and caller.user else "",
            "session": caller.session_id if caller else "",
            "traceparent": getattr(request, "traceparent", ""),
            "slow": slow or None,
        },
    )
