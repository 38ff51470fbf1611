"""The page at the root of the instance."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from foundation.safe_views import reads_only


@reads_only
def landing(request: HttpRequest) -> HttpResponse:
    """Links to the sites. The page is public and shows nothing of the instance."""
    return render(request, "site/landing.html")
