"""Adds CORS headers, compression and Vary to every response under /api/ (spec 02, 2.6).

CORS (Fetch, 3.2): scripts from an origin of a trusted application may call the API and read all headers. A preflight
has no token, so it allows the origins of every enabled application; the response itself allows those of the caller's.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import SimpleTemplateResponse

from domain.odata.metadata.model_documents import accepts_gzip
from identity.cors import origin_allowed

View = Callable[..., HttpResponse]

#: Compressing a smaller body saves no network packet.
GZIP_MIN_BYTES = 2048
#: A page of 1,000 rows shrinks to a tenth at level 1, for a third of level 6's time.
_GZIP_LEVEL = 1
_METHODS = "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS"
_REQUEST_HEADERS = (
    "Authorization, Content-Type, Accept, Accept-Language, OData-Version, OData-MaxVersion, If-Match, If-None-Match, "
    "Prefer, TransactionId, ErpContextParameters, X-Request-Id, X-Change-Reason, traceparent, DPoP, "
    "Idempotency-Key, Repeatability-Request-ID, Repeatability-First-Sent"
)
#: A list of header names. A preflight allows the headers that it requests: frameworks add their own, such as UI5 its
#: X-SAP-Security-Session.
_HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+(\s*,\s*[A-Za-z0-9!#$%&'*+.^_`|~-]+)*", re.ASCII)
_HEADER_NAMES_BYTES = 2000
_ANSWER_HEADERS = (
    "OData-Version, OData-EntityId, ETag, Location, Preference-Applied, Warning, X-Warnings, X-Rule-Trace, "
    "X-Dry-Run-Report, X-Request-Id, Link, Retry-After, WWW-Authenticate, DPoP-Nonce, Content-Language, "
    "Idempotent-Replayed, Repeatability-Result"
)
_PREFLIGHT_SECONDS = "3600"
_VARY = "Accept, Accept-Encoding, Accept-Language, Authorization, Cookie, Origin, OData-MaxVersion, Prefer"


def api_view(view: View) -> View:
    """Wrap a view of the API."""

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        origin = request.META.get("HTTP_ORIGIN", "")
        if origin and request.method == "OPTIONS" and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in request.META:
            response = _preflight(request, origin)
        else:
            response = view(request, *args, **kwargs)
            if isinstance(response, SimpleTemplateResponse):
                response.render()
            if origin:
                _share(request, response, origin)
        _compress(request, response)
        response.headers["Vary"] = _VARY
        return response

    # Callers authenticate by tokens, not cookies, so CSRF is impossible.
    answered.csrf_exempt = True  # type: ignore[attr-defined]
    return answered


def _preflight(request: HttpRequest, origin: str) -> HttpResponse:
    response = HttpResponse(status=204, headers={"Allow": _METHODS})
    if origin_allowed(origin):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Allow-Methods"] = _METHODS
        asked = request.META.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS", "").strip()
        is_valid = len(asked) <= _HEADER_NAMES_BYTES and _HEADER_NAMES.fullmatch(asked)
        response.headers["Access-Control-Allow-Headers"] = asked if is_valid else _REQUEST_HEADERS
        response.headers["Access-Control-Max-Age"] = _PREFLIGHT_SECONDS
    return response


def _share(request: HttpRequest, response: HttpResponse, origin: str) -> None:
    """Let scripts of the origin read the response, if the caller's application allows it.

    Before authentication the origins of all applications are allowed: an error there contains no secret.
    """
    caller = getattr(request, "call_context", None)
    if origin_allowed(origin, caller.application if caller is not None else None):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = _ANSWER_HEADERS


def _compress(request: HttpRequest, response: HttpResponse) -> None:
    if response.streaming or len(response.content) < GZIP_MIN_BYTES or response.headers.get("Content-Encoding"):
        return
    if accepts_gzip(request.META.get("HTTP_ACCEPT_ENCODING", "")):
        response.content = gzip.compress(response.content, _GZIP_LEVEL, mtime=0)
        response.headers["Content-Encoding"] = "gzip"


__all__ = ["GZIP_MIN_BYTES", "api_view"]
