"""Django REST framework for JSON endpoints beside the Domain API: who calls, and how failures are answered.

Failures are rendered as the Domain API's are (foundation.errors).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from foundation import errors
from identity.authentication import identify_caller
from identity.models import User
from identity.token_identity import TokenIdentity

_CREDENTIALS = ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY")


class TokenAuthentication(BaseAuthentication):
    """An access token or a reference token; `request.auth` is its TokenIdentity. Opens no session."""

    def authenticate(self, request: Request) -> tuple[User, TokenIdentity] | None:
        """None without a credential. Raises Unauthorized, BadRequest, Forbidden or TooManyRequests."""
        if not any(request.META.get(name) for name in _CREDENTIALS):
            return None
        identity = identify_caller(request._request)
        return User.objects.get(pk=identity.caller.id), identity

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class IsPerson(BasePermission):
    """Refuses services, whose user is a system user or acts for an application (UserRequired)."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = request.user
        if not isinstance(user, User):
            return False
        service = isinstance(request.auth, TokenIdentity) and request.auth.is_service
        if service or user.user_type == "SystemUserNoLogin":
            raise errors.Forbidden(errors.USER_REQUIRED)
        return True


class AlwaysJson(BaseContentNegotiation):
    """The view's only format, whatever Accept names: a refusal of `Accept` would help nobody."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        content_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == content_type), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class PlatformView(APIView):
    """Base of JSON views with the platform's errors; responses are not stored unless the view says otherwise."""

    renderer_classes: Sequence[type[BaseRenderer]] = (JSONRenderer,)
    parser_classes = ()
    content_negotiation_class: type[BaseContentNegotiation] = AlwaysJson

    metadata_class = None

    def get_exception_handler(self) -> Any:
        return failure_response

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse methods that the view lacks before it asks who calls."""
        if not hasattr(self, (request.method or "").lower()) or request.method == "OPTIONS":
            names = [name for name in self.allowed_methods if name != "OPTIONS"]
            raise errors.MethodNotAllowed(request.method or "", names)
        super().initial(request, *args, **kwargs)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Set Cache-Control where the view has not."""
        result = super().finalize_response(request, response, *args, **kwargs)
        result.headers.setdefault("Cache-Control", "no-store")
        return result


def failure_response(failure: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: errors of the platform, and DRF's own in their form; None re-raises others."""
    request: HttpRequest = context["request"]._request
    error = platform_error(failure, request)
    if error is None:
        return None
    rendered = errors.render(error, correlation_id=getattr(request, "request_id", ""), debug=bool(settings.DEBUG))
    return Response(dict(rendered.body), status=rendered.status, headers=dict(rendered.headers))


def platform_error(failure: Exception, request: HttpRequest) -> errors.PlatformError | None:
    """The failure as an error of the platform, or None for one that nobody expected."""
    match failure:
        case errors.PlatformError():
            return failure
        case exceptions.NotAuthenticated():
            return errors.Unauthorized(errors.TOKEN_MISSING)
        case exceptions.UnsupportedMediaType():
            return errors.UnsupportedMediaType(
                errors.UNSUPPORTED_MEDIA_TYPE, "application/json", request.content_type or "nothing"
            )
        case exceptions.ParseError():
            return errors.BadRequest(errors.INVALID_JSON, str(failure.detail))
        case exceptions.NotFound() | Http404():
            return errors.NotFound(errors.RESOURCE_NOT_FOUND, request.path)
        case exceptions.PermissionDenied():
            return errors.Forbidden(errors.PERMISSION_DENIED, request.method or "", request.path)
    return None
