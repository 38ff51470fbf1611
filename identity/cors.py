"""CORS: allows the origins of trusted applications' login URLs (spec 02, 2.6; Fetch, 3.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers

from foundation.versioned_cache import VersionedCache
from identity.changes import TOKENS
from identity.models import TrustedApplication

_PREFLIGHT_SECONDS = "3600"

View = Callable[..., HttpResponseBase]


def origin_allowed(origin: str, application_uri: str | None = None) -> bool:
    """Whether the origin belongs to the application; to any enabled one if the request names none."""
    names = _cached_origins.get().get(origin, frozenset())
    return application_uri in names if application_uri else bool(names)


def for_applications(view: View) -> View:
    """Allow scripts of trusted applications to call the view. No cookies: credentials are in the request itself."""

    @wraps(view)
    def with_cors_headers(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        origin = request.META.get("HTTP_ORIGIN", "")
        allowed = bool(origin) and origin_allowed(origin)
        if request.method == "OPTIONS":
            response: HttpResponseBase = HttpResponse(status=204, headers={"Allow": "GET, POST, OPTIONS"})
            if allowed:
                response.headers["Access-Control-Allow-Methods"] = "GET, POST"
                response.headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type, DPoP"
                response.headers["Access-Control-Max-Age"] = _PREFLIGHT_SECONDS
        else:
            response = view(request, *args, **kwargs)
        if allowed:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = "DPoP-Nonce, WWW-Authenticate"
        patch_vary_headers(response, ("Origin",))
        return response

    # The decorated views take no cookies, so CSRF is impossible.
    with_cors_headers.csrf_exempt = True  # type: ignore[attr-defined]
    return with_cors_headers


def _origins() -> Mapping[str, frozenset[str]]:
    """Origin → applications that have it."""
    result: dict[str, set[str]] = {}
    for application in TrustedApplication.objects.filter(is_enabled=True):
        for url in application.login_urls:
            parts = urlsplit(url)
            if parts.scheme in {"http", "https"}:
                result.setdefault(f"{parts.scheme}://{parts.netloc}", set()).add(application.application_uri)
    return {origin: frozenset(names) for origin, names in result.items()}


_cached_origins = VersionedCache(_origins, TOKENS)
