"""The pushed authorization request endpoint (RFC 9126, 2)."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from oauth2_provider.exceptions import OAuthToolkitError
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, InvalidClientError, InvalidRequestError

from identity import rate_limits
from identity.instance import client_address
from identity.models import TrustedApplication
from identity.oauth import authorize, pushed
from identity.oauth.binding import request_key
from identity.oauth.client_documents import DocumentRefused, client_resolve
from identity.oauth.endpoints import FormEndpoint

# Limits the stored rows, since a public client has no secret. A whole company may share one address.
_PUBLIC_PER_MINUTE = 120
_CREDENTIALS = {"client_secret", "client_assertion", "client_assertion_type"}
#: The steps of the authorization endpoint that do not depend on the user.
_STEPS = (
    authorize.load_client,
    authorize.check_application,
    authorize.check_unsupported,
    authorize.check_response_type,
    authorize.check_response_mode,
    authorize.load_scopes,
    authorize.check_prompt,
    authorize.load_max_age,
    authorize.load_hint,
)


class PushedRequestEndpoint(FormEndpoint, OAuthLibMixin):  # type: ignore[misc]
    """POST the parameters of an authorization request, and the client's authentication as at the token endpoint."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            client_resolve(self.client_id, client_address(request))
        except DocumentRefused as refused:
            raise InvalidClientError(description=str(refused)) from refused
        client: TrustedApplication = self.get_oauthlib_core().authenticate_client(request)
        rate_limits.check_token_request(client.client_id)
        if client.is_public:
            address = rate_limits.counted_as(client_address(request))
            rate_limits.count(f"par:{client.client_id}:{address}", _PUBLIC_PER_MINUTE)
        if "request_uri" in self.form:
            raise InvalidRequestError(description="A pushed request may not have request_uri.")
        # Parameters with _ are the platform's own.
        given = {n: value for n, value in self.form.items() if n not in _CREDENTIALS and not n.startswith("_")}
        if any("\x00" in text for pair in given.items() for text in pair):
            raise InvalidRequestError(description="A pushed request may not have NUL.")  # PostgreSQL's JSON has none
        parameters = {**given, "client_id": client.client_id, **self._key(request, client)}
        try:
            self._check(request, parameters)
        except OAuthToolkitError as error:
            raise error.oauthlib_error from error
        request_uri = pushed.pushed_request_save(client, parameters)
        return JsonResponse({"request_uri": request_uri, "expires_in": pushed.LIFETIME_SECONDS}, status=201)

    def _key(self, request: HttpRequest, client: TrustedApplication) -> dict[str, str]:
        """The parameter dpop_jkt, from the proof of the push if it has one (RFC 9449, 10.1)."""
        if "HTTP_DPOP" not in request.META:
            return {}
        uri, _method, _body, headers = self.get_oauthlib_core()._extract_params(request)
        jkt = request_key(Request(uri, headers=headers), client)
        if self.form.get("dpop_jkt", jkt) != jkt:
            raise CustomOAuth2Error("invalid_dpop_proof", description="dpop_jkt is not the key of the DPoP proof.")
        return {"dpop_jkt": jkt}

    def _check(self, request: HttpRequest, parameters: dict[str, str]) -> None:
        """Check the parameters as the authorization endpoint does. Raises OAuthToolkitError."""
        query = QueryDict(mutable=True)
        query.update(parameters)
        http_request = HttpRequest()
        http_request.method, http_request.path, http_request.META = "GET", request.path, request.META
        http_request.protocol_parameters = query  # type: ignore[attr-defined]
        view = authorize.AuthorizationEndpoint()
        view.setup(http_request)
        authorization = authorize.AuthorizationRequest(view, http_request, query, is_pushed=True)
        for step in _STEPS:
            step(authorization)
