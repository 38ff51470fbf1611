"""Tool endpoints for integrators, and health probes for load balancers (spec 01, 1.1)."""

from __future__ import annotations

import platform as python_platform
import tomllib

import django
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters

from foundation.safe_views import reads_only
from identity.anonymous_forms import MAX_BYTES, is_too_long
from identity.applications import secret_hash
from identity.cors import for_everybody
from identity.instance import base_url
from platform_site import health
from platform_site.environment import BASE_DIR

VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]
_NO_STORE = {"Cache-Control": "no-store"}
_MAX_SECRET = 4096


@csrf_exempt
@sensitive_post_parameters()
@for_everybody
def sha256(request: HttpRequest) -> HttpResponse:
    """The base64 SHA-256 of `secret`, as ApplicationSecretHash holds it. The secret is neither stored nor logged."""
    if request.method not in {"GET", "POST"}:
        return JsonResponse({"error": "Use GET or POST."}, status=405, headers={"Allow": "GET, POST", **_NO_STORE})
    if is_too_long(request):
        return JsonResponse({"error": f"The body may have {MAX_BYTES} bytes."}, status=413, headers=_NO_STORE)
    secret = request.POST.get("secret") or request.GET.get("secret")
    if not secret or len(secret) > _MAX_SECRET:
        return JsonResponse({"error": "Give the parameter secret."}, status=400, headers=_NO_STORE)
    return JsonResponse({"sha256": secret_hash(secret)}, headers=_NO_STORE)


@reads_only
@for_everybody
def ver(request: HttpRequest) -> HttpResponse:
    """The product's version."""
    return JsonResponse({"version": VERSION}, headers=_NO_STORE)


@reads_only
@for_everybody
def ver_text(request: HttpRequest) -> HttpResponse:
    """The product's version as text/plain, at the reference platform's address."""
    return HttpResponse(VERSION, content_type="text/plain; charset=utf-8", headers=_NO_STORE)


@reads_only
@for_everybody
def server_info(request: HttpRequest) -> HttpResponse:
    """Versions, base URL and clock, for support; nothing that helps an attacker."""
    content = {
        "version": VERSION,
        "baseUrl": base_url(request),
        "serverTimeUtc": timezone.now().isoformat(),
        "python": ".".join(python_platform.python_version_tuple()[:2]),
        "django": ".".join(str(part) for part in django.VERSION[:2]),
    }
    return JsonResponse(content, headers=_NO_STORE)


@reads_only
def healthz(request: HttpRequest) -> HttpResponse:
    """Liveness: the process answers. The database is not checked, so that a slow database gets no process killed."""
    return HttpResponse("ok\n", content_type="text/plain", headers=_NO_STORE)


@reads_only
def readyz(request: HttpRequest) -> HttpResponse:
    """Readiness: database, cache, queue and sandbox work, else 503. The workers are listed, but not required."""
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
