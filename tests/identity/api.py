"""An API address that answers the caller's context, beside the platform's own addresses."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.urls import include, path

from identity.authentication import authenticate, require_scope


def whoami(request: HttpRequest) -> JsonResponse:
    """What authenticate found."""
    context = authenticate(request)
    require_scope(context, "read")
    assert context.user is not None
    return JsonResponse(
        {
            "login": context.user.login,
            "application": context.application,
            "session": context.session_id,
            "scopes": sorted(context.scopes),
            "language": context.language,
            "company": context.company_id,
            "prefer": dict(context.prefer),
            "request_id": context.request_id,
        }
    )


urlpatterns = [path("api/whoami", whoami), path("", include("platform_site.urls"))]
