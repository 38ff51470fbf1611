"""The userinfo endpoint (OIDC Core, 5.3): the toolkit's view, with the API's check of access tokens."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from oauth2_provider.views import UserInfoView

from foundation import errors
from identity.oauth.endpoints import english, error_response, form_problem, slow_down
from identity.oauth.responses import FORM, UnreadableForm, no_store, parameters_given

_HEADERS = {"HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY"}


class UserinfoEndpoint(UserInfoView):  # type: ignore[misc]
    """GET or POST with a user's access token that has the scope openid: in the header, or in a form (RFC 6750, 2.2)."""

    http_method_names = ["get", "post"]

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return error_response(405, "invalid_request", "Use GET or POST.", {"Allow": "GET, POST"})

    def _create_userinfo_response(self, request: HttpRequest) -> HttpResponse:
        if request.method == "POST" and request.content_type == FORM:
            if problem := form_problem(request):
                return problem
            if "access_token" in parameters_given(request) and request.META.keys() & _HEADERS:
                return error_response(
                    400, "invalid_request", "Send the token in one place: the Authorization header or the body."
                )
        try:
            return no_store(super()._create_userinfo_response(request))
        except UnreadableForm as unreadable:
            return error_response(400, "invalid_request", str(unreadable))
        except errors.TooManyRequests as limited:
            return slow_down(limited)
        except errors.PlatformError as refused:
            # RFC 6750, 3.1
            error = "insufficient_scope" if refused.status == 403 else "invalid_token"
            response = error_response(refused.status, error, english(refused), refused.headers())
            response.headers.setdefault("WWW-Authenticate", f'Bearer error="{error}"')
            return response
