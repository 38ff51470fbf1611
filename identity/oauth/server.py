"""The toolkit's server and backend with this provider's grants, and its tokens by type of user.

Implicit and password grants are not supported (RFC 9700, 2.1.2 and 2.4). A further grant is a handler of
oauthlib in OAUTH2_GRANT_TYPES_SUPPORTED and `Server`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from oauth2_provider.oauth2_backends import OAuthLibCore
from oauth2_provider.settings import oauth2_settings
from oauthlib import openid
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749.tokens import BearerToken, OAuth2Token

from identity.models import TrustedApplication
from identity.oauth import issue
from identity.oauth.clients import DEVICE_CODE, TOKEN_EXCHANGE
from identity.oauth.device_grants import DeviceGrantHandler
from identity.oauth.exchange import ExchangeGrantHandler
from identity.oauth.responses import FORM, parameters_given
from identity.oauth.validator import Validator

# Parameters for oauthlib. Others would become attributes of oauthlib's request, such as `user`.
_IN_QUERY = {
    "client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method",
}  # fmt: skip
_IN_BODY = {
    "grant_type", "code", "redirect_uri", "code_verifier", "client_id", "client_secret", "scope", "refresh_token",
    "token", "token_type_hint", "access_token", "device_code", "client_assertion", "client_assertion_type",
    "subject_token", "subject_token_type", "requested_token_type", "actor_token", "actor_token_type",
    "audience", "resource",
}  # fmt: skip


class Core(OAuthLibCore):  # type: ignore[misc]
    """Passes oauthlib only the protocol's parameters, without empty ones (RFC 6749, 3.1)."""

    def _get_escaped_full_path(self, request: HttpRequest) -> str:
        query = {}
        if request.method == "GET":
            query = {name: value for name, value in parameters_given(request).items() if name in _IN_QUERY}
        if "response_type" in query:
            # The order of its values does not matter (OAuth 2.0 Multiple Response Types, 3); oauthlib expects one.
            query["response_type"] = " ".join(sorted(str(query["response_type"]).split()))
        return f"{request.path}?{urlencode(query)}" if query else request.path

    def extract_body(self, request: HttpRequest) -> list[tuple[str, str]]:
        if request.method != "POST" or request.content_type != FORM:
            return []
        given = parameters_given(request).lists()
        return [(name, str(value)) for name, values in given for value in values if name in _IN_BODY]

    def authenticate_client(self, request: HttpRequest) -> TrustedApplication:
        """As the toolkit's, but returns the client. Raises InvalidClientError, InvalidRequestError."""
        oauth_request = Request(*self._extract_params(request))
        self.server.request_validator.authenticate_client(oauth_request)
        client: TrustedApplication = oauth_request.client
        return client


class Tokens(BearerToken):  # type: ignore[misc]
    """The tokens of a response: external users get neither access nor refresh token."""

    def create_token(self, request: Request, refresh_token: bool = False, **kwargs: Any) -> OAuth2Token:
        if issue.is_external(request.user):
            expires_in = oauth2_settings.ID_TOKEN_EXPIRE_SECONDS
            return OAuth2Token({"token_type": "Bearer", "expires_in": expires_in, "scope": " ".join(request.scopes)})
        confidential = not request.client.is_public
        wanted = refresh_token and confidential and "offline_access" in issue.refresh_scopes(request)
        token = super().create_token(request, refresh_token=wanted, **kwargs)
        if getattr(request, "dpop_jkt", ""):
            token["token_type"] = "DPoP"  # noqa: S105
        return token


class Server(openid.Server):  # type: ignore[misc]
    """oauthlib's server of all endpoints, with the grants and response types of the settings only."""

    def __init__(
        self,
        request_validator: Validator,
        token_expires_in: int | None = None,
        token_generator: Any = None,
        refresh_token_generator: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(request_validator, token_expires_in, token_generator, refresh_token_generator, **kwargs)
        self._default_token_type = Tokens(request_validator, token_generator, token_expires_in, refresh_token_generator)
        # One handler with and without openid: it adds an id token only if openid was granted.
        code = self.openid_connect_auth
        own = {
            "authorization_code": code,
            DEVICE_CODE: DeviceGrantHandler(request_validator),
            TOKEN_EXCHANGE: ExchangeGrantHandler(request_validator),
        }
        self._response_types = {
            name: code if name == "code" else self.response_types[name]
            for name in oauth2_settings.OIDC_RESPONSE_TYPES_SUPPORTED
        }
        self._grant_types = {
            name: own.get(name) or self.grant_types[name] for name in oauth2_settings.OAUTH2_GRANT_TYPES_SUPPORTED
        }
