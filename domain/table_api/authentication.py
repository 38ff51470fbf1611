"""Authentication of the Table API: bearer or reference token, or HTTP Basic with a personal token (spec 11, 11.1)."""

from __future__ import annotations

from django.db import Error, connection
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from foundation import errors
from identity.authentication import TABLE_API, authenticate, authenticated
from identity.basic import has_basic_credentials, identify_again, identify_basic
from identity.context import CallContext, Caller
from identity.credentials import read_credential
from identity.token_identity import identify

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


def has_same_rights(request: HttpRequest, context: CallContext) -> bool:
    """Whether the token or password of an answered request still gives the rights of its context.

    Closes the connection of the thread, which is that of an answer and not of a request.

    A token that has only expired does, so that an answer may take longer than a token is valid. The DPoP proof is not
    checked again, because it is of the request. While the database is not available, nothing is known to have changed.
    """
    try:
        is_basic = has_basic_credentials(request)
        identity = identify_again(request) if is_basic else identify(read_credential(request.META))
        renewed = authenticated(request, identity)
    except errors.PlatformError as error:
        return error.code is errors.TOKEN_EXPIRED or isinstance(error, errors.Unavailable)
    except Error:
        return True
    finally:
        if not connection.in_atomic_block:
            connection.close()
    return "read" in renewed.scopes and renewed.permissions.key == context.permissions.key
