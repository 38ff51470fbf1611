"""Limits the size of anonymous form bodies: decoding a form takes up to sixty times its size in memory.

The web server accepts larger bodies (platform_site.serving.receiving) for forms of logged-in users and for JSON, which
the Domain API reads only with a token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

#: Larger than any login form or token request.
MAX_BYTES: Final = 16 * 1024


def is_too_long(request: HttpRequest) -> bool:
    """Whether the body of the request has more than MAX_BYTES."""
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    return not length.isdecimal() or int(length[:12]) > MAX_BYTES


class AnonymousFormMiddleware:
    """Answers 413 to long forms of anonymous browsers, before CSRF protection decodes them.

    CSRF-exempt views check the length themselves, and answer in their own formats.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, arguments: Any, named: Any) -> HttpResponse | None:
        """Return the 413 response, or None."""
        if not is_too_long(request) or getattr(view, "csrf_exempt", False) or SESSION_KEY in request.session:
            return None
        return render(request, "413.html", {"limit": MAX_BYTES}, status=413)
