"""Authentication of the Table API: bearer or reference token, or HTTP Basic with a personal token (spec 11, 11.1)."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from foundation import errors
from identity.authentication import TABLE_API, authenticate, authenticated
from identity.basic import has_basic_credentials, identify_basic
from identity.context import CallContext, Caller

CHALLENGE = 'Bearer, Basic realm="Table API", charset="UTF-8"'


class TableAuthentication(BaseAuthentication):
    """A call by token or by HTTP Basic, in a licensed session."""

    def authenticate(self, request: Request) -> tuple[Caller | None, CallContext] | None:
        """None without a credential. Raises Unauthorized, BadRequest, Forbidden, TooManyRequests, Unavailable."""
        http = request._request
        if has_basic_credentials(http):
            context = authenticated(http, identify_basic(http))
            return context.user, context
        try:
            context = authenticate(http, audience=TABLE_API)
        except errors.Unauthorized as error:
            if error.code is errors.TOKEN_MISSING:
                return None
            raise
        return context.user, context

    def authenticate_header(self, request: Request) -> str:
        """The challenge of a 401 (RFC 9110, 11.6.1)."""
        return CHALLENGE
