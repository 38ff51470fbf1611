"""An API address that answers the caller's context, beside the platform's own addresses."""

from __future__ import annotations

from django.urls import include, path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from identity.authentication import require_scope_of
from identity.rest import context_of


class WhoAmI(APIView):
    """An address with the defaults of every view of the API."""

    def get(self, request: Request) -> Response:
        """What TokenAuthentication found."""
        context = context_of(request)
        require_scope_of(context.scopes, "read")
        assert context.user is not None
        return Response(
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


urlpatterns = [path("api/whoami", WhoAmI.as_view()), path("", include("platform_site.urls"))]
