"""Security headers of pages (spec 09, 9.5).

A view may widen its page's policy by attributes of its response: `form_leads_away` (whether the page's form ends at an
application or provider) and `frame_sources` (URLs that the page loads in frames).
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse

from identity.instance import ID_PATH

_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


def origin_of(url: str) -> str:
    """The CSP source expression of a URL: its origin, or its scheme if it has no origin."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in {"http", "https"} else f"{parts.scheme}:"


class SecurityHeadersMiddleware:
    """Set Content-Security-Policy and Permissions-Policy, and Cross-Origin-Opener-Policy on the provider's pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", _policy(response))
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
        if request.path.startswith(f"{ID_PATH}/"):
            # A sign-in in a popup of an application answers its opener (OIDC Core, 3.1.2.1, display=popup).
            response.headers.setdefault("Cross-Origin-Opener-Policy", "unsafe-none")
        return response


def _policy(response: HttpResponse) -> str:
    # Chromium checks all redirects of a form, too, and those after an application's callback cannot be known.
    forms = "" if getattr(response, "form_leads_away", False) else "form-action 'self'; "
    frames: list[str] = getattr(response, "frame_sources", [])
    frame_sources = " ".join(dict.fromkeys(origin_of(url) for url in frames)) or "'self'"
    return f"{_POLICY}; {forms}frame-src {frame_sources}"
