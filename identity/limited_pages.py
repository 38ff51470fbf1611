"""Pages that answer 429 after too many attempts (spec 01, 1.9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import ngettext

from foundation import errors


def limited_page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    limited: errors.TooManyRequests | None,
    *,
    status: int = 200,
) -> HttpResponse:
    """The page with `status`, or, where `limited` refuses the request, with 429 and its Retry-After."""
    response = render(request, template, dict(context), status=429 if limited else status)
    if limited:
        response.headers["Retry-After"] = str(limited.retry_after_seconds)
    return response


def limited_text(limited: errors.TooManyRequests) -> str:
    """A sentence with the time of the next possible attempt."""
    if limited.code is errors.TOO_MANY_LOGINS:
        return limited.message
    seconds = limited.retry_after_seconds or 1
    return ngettext(
        "Too many failed attempts. Try again in %(seconds)s second.",
        "Too many failed attempts. Try again in %(seconds)s seconds.",
        seconds,
    ) % {"seconds": seconds}
