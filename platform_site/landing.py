"""The page at the root, for people who open the address that an instance prints."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from foundation.safe_views import reads_only


@reads_only
def landing(request: HttpRequest) -> HttpResponse:
    """Where to go from here. Says nothing about the instance that a stranger may not know."""
    return render(request, "site/landing.html")
