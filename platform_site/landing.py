"""The page at the root of the instance, and the page of an unexpected error."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from foundation.safe_views import reads_only


@reads_only
def landing(request: HttpRequest) -> HttpResponse:
    """Links to the sites. The page is public and shows nothing of the instance."""
    return render(request, "site/landing.html")


def unexpected_error(request: HttpRequest) -> HttpResponse:
    """The page of handler500. It makes no query: the database may be the cause."""
    context = {"request": request, "user": getattr(request, "_cached_user", None)}
    return HttpResponse(render_to_string("500.html", context), status=500)
