"""Configures oauthlib's endpoints with the supported grants (spec 01, 1.4).

Implicit, password and device grants are not supported (RFC 9700, 2.1.2 and 2.4).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpRequest
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749.endpoints import AuthorizationEndpoint, RevocationEndpoint, TokenEndpoint
from oauthlib.oauth2.rfc6749.grant_types import ClientCredentialsGrant
from oauthlib.oauth2.rfc6749.tokens import BearerToken, OAuth2Token, random_token_generator
from oauthlib.openid.connect.core.grant_types import AuthorizationCodeGrant, HybridGrant, RefreshTokenGrant

from identity import instance
from identity.oauth import issue
from identity.oauth.validator import Validator


class Tokens(BearerToken):  # type: ignore[misc]
    """The tokens of a response: external users get neither access nor refresh token."""

    def create_token(self, request: Request, refresh_token: bool = False, **kwargs: Any) -> OAuth2Token:
        if issue.is_external(request.user):
            request.expires_in = issue.seconds("ID_TOKEN_EXPIRE_SECONDS")
            return OAuth2Token(
                {"token_type": "Bearer", "expires_in": request.expires_in, "scope": " ".join(request.scopes)}
            )
        wanted = refresh_token and issue.may_refresh(request.client, request.scopes)
        return super().create_token(request, refresh_token=wanted, **kwargs)


class Server(AuthorizationEndpoint, TokenEndpoint, RevocationEndpoint):  # type: ignore[misc]
    """Authorization endpoint: code, hybrid. Token endpoint: code, client_credentials, refresh_token. Revocation."""

    def __init__(self, request_validator: Validator, **kwargs: Any) -> None:
        code = AuthorizationCodeGrant(request_validator)
        tokens = Tokens(
            request_validator,
            token_generator=issue.access_token_create,
            expires_in=issue.seconds("ACCESS_TOKEN_EXPIRE_SECONDS"),
            refresh_token_generator=random_token_generator,
        )
        AuthorizationEndpoint.__init__(
            self,
            default_response_type="code",
            response_types={"code": code, "code id_token": HybridGrant(request_validator)},
            default_token_type=tokens,
        )
        TokenEndpoint.__init__(
            self,
            default_grant_type="authorization_code",
            grant_types={
                "authorization_code": code,
                "client_credentials": ClientCredentialsGrant(request_validator),
                "refresh_token": RefreshTokenGrant(request_validator),
            },
            default_token_type=tokens,
        )
        RevocationEndpoint.__init__(self, request_validator)


@cache
def server() -> Server:
    """The process's server, without state of requests."""
    return Server(Validator())


def request_headers(request: HttpRequest) -> dict[str, str]:
    """The headers for oauthlib and the validator."""
    return {
        "Authorization": request.META.get("HTTP_AUTHORIZATION", ""),
        "Content-Type": request.META.get("CONTENT_TYPE", ""),
        "X-Issuer": instance.issuer(request),
    }
