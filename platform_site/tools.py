"""Small tools beside discovery, and the probes of load balancers (spec 01, 1.1)."""

from __future__ import annotations

import platform as python_platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import django
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters

from foundation.safe_views import reads_only
from identity.applications import secret_hash
from identity.cors import for_everybody
from identity.instance import base_url
from platform_site import health

VERSION = "0.1.0"
_NO_STORE = {"Cache-Control": "no-store"}
_MAX_SECRET = 4096


@csrf_exempt
@sensitive_post_parameters()
@for_everybody
def sha256(request: HttpRequest) -> HttpResponse:
    """`secret` → its base64 SHA-256, as ApplicationSecretHash holds it. Nothing of it is kept or logged."""
    if request.method not in {"GET", "POST"}:
        return JsonResponse({"error": "Use GET or POST."}, status=405, headers={"Allow": "GET, POST", **_NO_STORE})
    secret = request.POST.get("secret") or request.GET.get("secret")
    if not secret or len(secret) > _MAX_SECRET:
        return JsonResponse({"error": "Give the parameter secret."}, status=400, headers=_NO_STORE)
    return JsonResponse({"sha256": secret_hash(secret)}, headers=_NO_STORE)


@reads_only
@for_everybody
def ver(request: HttpRequest) -> HttpResponse:
    """The product's version."""
    return JsonResponse({"version": _version()}, headers=_NO_STORE)


@reads_only
@for_everybody
def server_info(request: HttpRequest) -> HttpResponse:
    """What a support engineer asks first; nothing that helps to attack."""
    content = {
        "version": _version(),
        "baseUrl": base_url(request),
        "serverTimeUtc": timezone.now().isoformat(),
        "python": ".".join(python_platform.python_version_tuple()[:2]),
        "django": ".".join(str(part) for part in django.VERSION[:2]),
    }
    return JsonResponse(content, headers=_NO_STORE)


@reads_only
def healthz(request: HttpRequest) -> HttpResponse:
    """Alive: the process answers. Nothing else is asked, so that a slow database does not get it killed."""
    return HttpResponse("ok\n", content_type="text/plain", headers=_NO_STORE)


@reads_only
def readyz(request: HttpRequest) -> HttpResponse:
    """Ready for requests: database, cache, queue and sandbox work; 503 otherwise. Says too how the workers do."""
    findings = health.examine_all()
    ready = not any(finding.problem for finding in findings if finding.vital)
    content = {
        "ready": ready,
        "checks": {
            finding.name: {"ok": finding.problem is None, "problem": finding.problem, "ms": finding.milliseconds}
            for finding in findings
        },
    }
    return JsonResponse(content, status=200 if ready else 503, headers=_NO_STORE)


@cache
def _version() -> str:
    try:
        return version("business-platform")
    except PackageNotFoundError:
        # Run from its tree, as it usually is.
        return VERSION
