"""Security headers of pages (spec 09, 9.5).

A view may widen its page's policy by attributes of its response: `form_action` (a URL to which a form may redirect) and
`frame_sources` (URLs that the page loads in frames).
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse

_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def origin_of(url: str) -> str:
    """The CSP source expression of a URL: its origin, or its scheme if it has no origin."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in {"http", "https"} else f"{parts.scheme}:"


class SecurityHeadersMiddleware:
    """Sets Content-Security-Policy and Permissions-Policy on every page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", _policy(response))
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
        return response


def _policy(response: HttpResponse) -> str:
    # Browsers apply form-action to redirects, too: a login that redirects to a client must name the client.
    form_action: str | None = getattr(response, "form_action", None)
    frames: list[str] = getattr(response, "frame_sources", [])
    forms = " ".join(["'self'", *([origin_of(form_action)] if form_action else [])])
    frame_sources = " ".join(dict.fromkeys(origin_of(url) for url in frames)) or "'self'"
    return f"{_POLICY}; form-action {forms}; frame-src {frame_sources}"
