"""Authentication, permissions, throttling, parsers and renderers of REST framework views (settings.REST_FRAMEWORK).

A view is a PlatformView (identity.rest_views). Its defaults are TokenAuthentication, IsAuthenticated, CallerThrottle
and JSON. domain.odata.http.exceptions renders failures.

request.user  the Caller of a token, or the User of a cookie; None for anonymous callers
request.auth  the CallContext of TokenAuthentication, the TokenIdentity of IdentityAuthentication; None for a cookie
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any, cast

import orjson
from django.http import HttpRequest
from rest_framework import parsers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from foundation import errors
from identity.authentication import authenticate, identify_caller
from identity.context import CallContext, Caller
from identity.models import User
from identity.rate_limits import check_api_request
from identity.token_identity import TokenIdentity

#: META names of the headers that may hold a token.
_CREDENTIALS = ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY")


def has_credential(request: HttpRequest) -> bool:
    """Whether the headers may hold a token."""
    return any(request.META.get(name) for name in _CREDENTIALS)


def context_of(request: Request) -> CallContext:
    """The context of a view with TokenAuthentication and IsAuthenticated."""
    return cast(CallContext, request.auth)


class TokenAuthentication(BaseAuthentication):
    """A call by token, in a licensed session. The rate limits are checked by CallerThrottle."""

    def authenticate(self, request: Request) -> tuple[Caller | None, CallContext] | None:
        """None without a credential. Raises Unauthorized, BadRequest, Forbidden, Unavailable (no licence)."""
        try:
            context = authenticate(request._request)
        except errors.Unauthorized as error:
            if error.code is errors.TOKEN_MISSING:
                return None
            raise
        return context.user, context

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401 (RFC 6750, 3)."""
        return "Bearer"


class IdentityAuthentication(BaseAuthentication):
    """An access token or a reference token, without a licensed session."""

    def authenticate(self, request: Request) -> tuple[User, TokenIdentity] | None:
        """None without a credential. Raises Unauthorized, BadRequest, Forbidden or TooManyRequests."""
        if not has_credential(request):
            return None
        identity = identify_caller(request._request)
        return User.objects.get(pk=identity.caller.id), identity

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401 (RFC 6750, 3)."""
        return "Bearer"


class IsUser(BasePermission):
    """Permits only users, no services, whose user is a system user or acts for an application (UserRequired)."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises Forbidden for services."""
        user = request.user
        if not isinstance(user, User):
            return False
        service = isinstance(request.auth, TokenIdentity) and request.auth.is_service
        if service or user.user_type == "SystemUserNoLogin":
            raise errors.Forbidden(errors.USER_REQUIRED)
        return True


class CallerThrottle(BaseThrottle):
    """The rate limits of the application and of its user (spec 01, 1.9)."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Raises TooManyRequests, which unlike the framework's refusal has RateLimit headers."""
        context = request.auth
        if isinstance(context, CallContext) and context.quota is not None:
            check_api_request(context.quota)
        return True


class FirstRenderer(DefaultContentNegotiation):
    """Selects the view's first renderer and ignores Accept, as RFC 9110, 12.5.1 allows."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The renderer and its media type."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class JSONParser(parsers.JSONParser):
    """JSON by orjson, which refuses deep nesting; Python's decoder would fail."""

    def parse(self, stream: IO[Any], media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """The document. Raises ParseError."""
        try:
            return orjson.loads(stream.read())
        except orjson.JSONDecodeError as error:
            raise ParseError(f"JSON: {error}") from error


class JSONRenderer(BaseRenderer):
    """JSON by orjson."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, context: Mapping[str, Any] | None = None
    ) -> bytes:
        """The document; nothing for an empty response."""
        return b"" if data is None else orjson.dumps(data, option=orjson.OPT_UTC_Z)
