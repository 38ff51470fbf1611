"""The token, revocation and introspection endpoints (RFC 6749, 3.2; RFC 7009; RFC 7662): the toolkit's views.

A further form-encoded endpoint (pushed authorization requests, device authorization) is one more FormEndpoint.
"""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from oauth2_provider.settings import oauth2_settings
from oauth2_provider.views import IntrospectTokenView, RevokeTokenView, TokenView
from oauthlib.oauth2.rfc6749.errors import InvalidClientError, InvalidRequestError, UnsupportedGrantTypeError

from foundation import errors
from foundation.fields import utc_now
from identity.factors.methods import claims_of
from identity.models import AccessToken, ReferenceToken, RefreshToken, TrustedApplication
from identity.oauth.claims import act_claim
from identity.oauth.endpoints import FormEndpoint
from identity.token_identity import identify


class TokenEndpoint(FormEndpoint, TokenView):  # type: ignore[misc]
    """POST grant_type and its parameters."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        grant_type = self.form.get("grant_type")
        if not grant_type:
            raise InvalidRequestError(description="The request has no grant_type.")
        supported = oauth2_settings.OAUTH2_GRANT_TYPES_SUPPORTED
        if grant_type not in supported:
            raise UnsupportedGrantTypeError(description=f"grant_type must be {' or '.join(supported)}.")
        # Not the toolkit's device flow, which looks up the plain device code; here its digest is stored.
        return self.authorization_flow_token_response(request)

    def authorization_flow_token_response(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """As the toolkit's, without a query for the saved token, which only a signal without receivers needs."""
        _url, headers, body, status = self.create_token_response(request)
        return HttpResponse(body, status=status, headers=headers)


class _OneTokenEndpoint(FormEndpoint):
    """Base of endpoints with the parameter `token`; counts a client's unknown tokens as guesses."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().post(request)  # type: ignore[misc]
        raw = self.form.get("token", "")
        # Revoked or expired tokens do not count, nor do JWTs, whose signature cannot be guessed.
        if response.status_code == 200 and raw.count(".") != 2:
            checksum = hashlib.sha256(raw.encode()).hexdigest()
            rows = ReferenceToken.objects.filter(digest=checksum), RefreshToken.objects.filter(token_checksum=checksum)
            if not any(found.exists() for found in rows):
                self.count_guess("token")
        return response


class RevocationEndpoint(_OneTokenEndpoint, RevokeTokenView):  # type: ignore[misc]
    """200 and `{}` for a token that the client may revoke, and for an unknown one (spec 14, 14.4)."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().post(request)
        return JsonResponse({}) if response.status_code == 200 else response


class IntrospectionEndpoint(_OneTokenEndpoint, IntrospectTokenView):  # type: ignore[misc]
    """The token's state, for the confidential client that it was issued to (RFC 7662, 2.2 and 4).

    Only for that client: the API checks access tokens itself.
    """

    client: TrustedApplication

    def authenticate_client(self, request: HttpRequest) -> bool:
        """Authenticate by client credentials only, not by an access token."""
        self.client = super().authenticate_client(request)
        if self.client.is_public or not self.client.is_enabled:
            raise InvalidClientError()
        return True

    def get_token_response(self, token_value: str | None = None) -> HttpResponse:
        if not token_value:
            raise InvalidRequestError(description="The request has no token.")
        return JsonResponse(_introspect(token_value, self.client))


def _introspect(raw: str, client: TrustedApplication) -> dict[str, Any]:
    """The introspection response; active for a valid token of an enabled application and user."""
    try:
        found = identify(raw)
    except errors.PlatformError:
        return _introspect_refresh(raw, client)
    if found.application_uri != client.application_uri:
        return {"active": False}
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    row = AccessToken.objects.filter(token_checksum=checksum).first()
    return {
        "active": True,
        "scope": " ".join(sorted(found.scopes)),
        "client_id": found.application_uri,
        "username": found.caller.login,
        "sub": found.application_uri if found.is_service else found.caller.login,
        "token_type": "DPoP" if found.jkt else "Bearer",
        **({"cnf": {"jkt": found.jkt}} if found.jkt else {}),  # RFC 9449, 6.2
        "exp": int(found.expires),
        **act_claim(found.actors),
        **({"iat": int(row.created.timestamp()), "sid": row.sid, **claims_of(row.authenticated_by)} if row else {}),
    }


def _introspect_refresh(raw: str, client: TrustedApplication) -> dict[str, Any]:
    checksum = hashlib.sha256(raw.encode()).hexdigest()
    usable = RefreshToken.objects.filter(revoked=None, expires__gt=utc_now(), user__active=True)
    row = usable.select_related("user").filter(token_checksum=checksum, application=client).first()
    if row is None:
        return {"active": False}
    return {
        "active": True,
        "scope": row.scope,
        "client_id": client.application_uri,
        "username": row.user.login,
        "sub": row.user.login,
        "exp": int(row.expires.timestamp()),
    }
