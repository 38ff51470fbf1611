"""Tool endpoints for integrators, and health probes for load balancers (spec 01, 1.1)."""

from __future__ import annotations

import platform as python_platform
import tomllib
from typing import Any

import django
from django.http import HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation import errors
from foundation.texts import utc_text
from identity.anonymous_forms import MAX_BYTES, is_too_long
from identity.applications import secret_hash
from identity.instance import base_url
from identity.rest_views import PublicView
from platform_site import health
from platform_site.environment import BASE_DIR

VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]


class ToolView(PublicView):
    """Base of public views whose responses scripts of any origin may read (CORS)."""

    default_response_headers = {"Access-Control-Allow-Origin": "*"}


class SecretSerializer(serializers.Serializer[None]):
    """The parameter of Sha256."""

    secret = serializers.CharField(max_length=4096, trim_whitespace=False)


@method_decorator(sensitive_post_parameters(), name="dispatch")
class Sha256View(ToolView):
    """The base64 SHA-256 of `secret`, as in ApplicationSecretHash. The secret is neither stored nor logged."""

    def get(self, request: Request) -> Response:
        return self._hashed(request.query_params)

    def post(self, request: Request) -> Response:
        if is_too_long(request._request):
            raise errors.PayloadTooLarge(errors.TOO_LARGE_WITHOUT_LOGIN, MAX_BYTES)
        return self._hashed(request.data or request.query_params)

    def _hashed(self, parameters: Any) -> Response:
        given = SecretSerializer(data=parameters)
        given.is_valid(raise_exception=True)
        return Response({"sha256": secret_hash(given.validated_data["secret"])})


class VersionView(ToolView):
    """The product's version."""

    def get(self, request: Request) -> Response:
        return Response({"version": VERSION})


class VersionTextView(ToolView):
    """The product's version as text/plain, at the reference platform's address."""

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(VERSION, content_type="text/plain; charset=utf-8")


class ServerInfoView(ToolView):
    """Versions, base URL and clock, for support; nothing that helps an attacker."""

    def get(self, request: Request) -> Response:
        return Response(
            {
                "version": VERSION,
                "baseUrl": base_url(request._request),
                "serverTimeUtc": utc_text(timezone.now()),
                "python": ".".join(python_platform.python_version_tuple()[:2]),
                "django": ".".join(str(part) for part in django.VERSION[:2]),
            }
        )


class HealthView(PublicView):
    """Liveness: the process responds. Does not check the database, so that a slow one restarts no processes."""

    def get(self, request: Request) -> HttpResponse:
        return HttpResponse("ok\n", content_type="text/plain")


class FindingSerializer(serializers.Serializer[health.Finding]):
    """The result of one check."""

    ok = serializers.SerializerMethodField()
    problem = serializers.CharField()
    ms = serializers.FloatField(source="milliseconds")

    def get_ok(self, finding: health.Finding) -> bool:
        """Whether the part works."""
        return finding.problem is None


class ReadyView(PublicView):
    """Readiness: 503 unless database, cache, queue and sandbox work. Reports the workers, but does not require them."""

    def get(self, request: Request) -> Response:
        findings = health.examine_all()
        ready = not any(finding.problem for finding in findings if finding.vital)
        checks = {finding.name: FindingSerializer(finding).data for finding in findings}
        return Response({"ready": ready, "checks": checks}, status=200 if ready else 503)
