"""The page at the root of the instance, and the responses to bad requests and unexpected errors."""

from __future__ import annotations

import sys
from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.views import defaults

from domain.dataset.checks.database_errors import operational_error
from foundation import errors
from foundation.safe_views import reads_only
from identity.oauth.urls import app_name as openid_provider


@reads_only
def landing(request: HttpRequest) -> HttpResponse:
    """A public page with links to the sites, without data of the instance."""
    return render(request, "site/landing.html")


#: URL names of the OpenID provider's pages for people; its other responses are for clients.
_PAGES = frozenset({"authorize", "device", "rp-initiated-logout"})


def unexpected_error(request: HttpRequest) -> HttpResponse:
    """handler500: a page, or JSON as in RFC 6749, 5.2; 503 while the database is busy, or it or Redis unreachable.

    It makes no query: the database may be the cause.
    """
    cause = sys.exc_info()[1]
    known = operational_error(cause) if isinstance(cause, OperationalError) else cause
    unavailable = known if isinstance(known, errors.Unavailable) else None
    status = unavailable.status if unavailable else 500
    # For a full disk the text is the database's message, which may name its files: not public.
    reason = unavailable.message if unavailable and unavailable.code is not errors.STORAGE_FULL else ""
    if _is_for_clients(request):
        error = "temporarily_unavailable" if unavailable else "server_error"
        description = reason or "The request failed for an unforeseen reason."
        response: HttpResponse = JsonResponse({"error": error, "error_description": description}, status=status)
        response.headers["Cache-Control"] = "no-store"
    else:
        context = {
            "request": request,
            "user": getattr(request, "_cached_user", None),
            "reason": reason,
        }
        response = HttpResponse(render_to_string("500.html", context), status=status)
    for name, value in (unavailable.headers() if unavailable else {}).items():
        response.headers[name] = value
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler400: a page with the reason; Django's own page for a suspicious request, such as for a wrong host."""
    if not isinstance(exception, BadRequest):
        return defaults.bad_request(request, exception)
    return render(request, "site/bad_request.html", {"reason": str(exception)}, status=400)


class NotAllowedMiddleware:
    """Renders 405.html where a view for forms alone was opened as a page: Django's response has no content."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        is_empty = isinstance(response, HttpResponse) and not response.content
        if response.status_code != 405 or request.method != "GET" or not is_empty:
            return response
        page = render(request, "405.html", status=405)
        page.headers["Allow"] = response.headers["Allow"]
        return page


def _is_for_clients(request: HttpRequest) -> bool:
    try:
        match = resolve(request.path_info)  # the request may have failed before URL resolution
    except Resolver404:
        return False
    return match.app_name == openid_provider and match.url_name not in _PAGES
