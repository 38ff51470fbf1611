"""The receiver of demo webhooks: accepts and shows requests of this instance. In demo mode only.

It keeps the newest requests in the cache.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from domain.admin.context import is_administrator
from foundation.fields import utc_now
from platform_site.admin_site import SitePage

_KEY = "demo-receiver"
#: Maximum requests kept, seconds for which they are kept, and characters shown of each.
_KEPT, _SECONDS, _SHOWN = 20, 7 * 24 * 3600, 2_000
_HEADERS = ("Content-Type", "User-Agent", "webhook-id", "webhook-signature")


@csrf_exempt
@require_POST
def receive(request: HttpRequest, what: str) -> HttpResponse:
    """Accept a request and keep it. 404 outside demo mode."""
    if not settings.DEMO:
        raise Http404
    got = {
        "at": utc_now(),
        "what": what,
        "headers": [(name, request.headers[name]) for name in _HEADERS if name in request.headers],
        "body": request.body[:_SHOWN].decode(errors="replace"),
    }
    cache.set(_KEY, [got, *cache.get(_KEY, [])][:_KEPT], _SECONDS)
    return JsonResponse({"received": what})


def received_page(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    """The requests, newest first."""
    return TemplateResponse(request, "site/demo_receiver.html", {**context, "received": cache.get(_KEY, [])})


def _may(request: HttpRequest) -> bool:
    return settings.DEMO and is_administrator(request)


RECEIVED = SitePage("demo-receiver", _("Demo receiver"), "Automation", received_page, _may)
