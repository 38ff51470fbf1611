"""The toolkit's request validator: each override calls a function of the module that owns the subject.

Earlier steps store their results in the request under the names of oauthlib and the toolkit: client, client_id, user,
scopes, nonce, refresh_token_instance, access_token (the new row; at userinfo the TokenIdentity); and in
`grant_instance`, the row of the code.
"""

from __future__ import annotations

import datetime
from typing import Any

from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.common import Request

from foundation import errors
from identity import authentication, rate_limits
from identity.audit_actors import actor_of_client
from identity.factors.methods import claims_of
from identity.models import Grant, TrustedApplication, User
from identity.oauth import binding, claims, clients, codes, device_grants, issue, jwt, refresh, scopes


class Validator(OAuth2Validator):  # type: ignore[misc]
    """Configured as OAUTH2_VALIDATOR_CLASS."""

    oidc_claim_scope = claims.CLAIM_SCOPES

    # --- the client ---------------------------------------------------------------------------------------------------

    def client_authentication_required(self, request: Request, *args: Any, **kwargs: Any) -> bool:
        """Always: public clients authenticate without a secret."""
        return True

    def authenticate_client(self, request: Request, *args: Any, **kwargs: Any) -> bool:
        credentials = clients.credentials_read(
            request.headers.get("Authorization", ""), dict(request.decoded_body or ())
        )
        application = clients.client_authenticate(credentials, clients.audiences_of(request))
        request.client = application
        request.client_id = application.client_id
        return True

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: TrustedApplication, request: Request, *args: Any, **kwargs: Any
    ) -> bool:
        # After client authentication: otherwise anonymous requests could use up the client's limit.
        rate_limits.check_token_request(client.client_id)
        clients.check_grant(client, grant_type)
        request.dpop_jkt = binding.request_key(request, client)
        return True

    def validate_response_type(
        self, client_id: str, response_type: str, client: TrustedApplication, request: Request, *a: Any, **kw: Any
    ) -> bool:
        return client.is_interactive

    # --- scopes -------------------------------------------------------------------------------------------------------

    def validate_scopes(
        self, client_id: str, scopes_: list[str], client: TrustedApplication, request: Request, *a: Any, **kw: Any
    ) -> bool:
        if request.grant_type == clients.DEVICE_CODE:
            return True  # those that the person has allowed (device_load)
        service = request.grant_type == "client_credentials"
        request.scopes = scopes.scopes_grant(client, (request.scope or "").split(), service=service)
        return True

    def get_default_scopes(self, client_id: str, request: Request, *args: Any, **kwargs: Any) -> list[str]:
        return list(request.client.scopes)

    # --- authorization codes ------------------------------------------------------------------------------------------

    def is_pkce_required(self, client_id: str, request: Request) -> bool:
        """Whether the client is public, registered itself, or must push requests; for others PKCE is optional.

        RFC 9700, 2.1.1; FAPI 2.0 Security Profile, 5.3.2.2.
        """
        client = request.client
        return bool(client.is_public or client.has_registered_itself or client.pushed_requests_required)

    def _create_authorization_code(self, request: Request, code: dict[str, str], expires: Any = None) -> Grant:
        return codes.code_save(request, code["code"])

    def validate_code(
        self, client_id: str, code: str, client: TrustedApplication, request: Request, *args: Any, **kwargs: Any
    ) -> bool:
        codes.code_load(code, client, request)
        return True

    def get_code_challenge(self, code: str, request: Request) -> str | None:
        return request.grant_instance.code_challenge or None

    def get_code_challenge_method(self, code: str, request: Request) -> str | None:
        return request.grant_instance.code_challenge_method or None

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: TrustedApplication, *args: Any, **kwargs: Any
    ) -> bool:
        request: Request = args[0]
        codes.check_redirect_uri(request, redirect_uri)
        return True

    def get_authorization_code_nonce(
        self, client_id: str, code: str, redirect_uri: str, request: Request
    ) -> str | None:
        return request.nonce or None

    def invalidate_authorization_code(self, client_id: str, code: str, request: Request, *args: Any, **kw: Any) -> None:
        codes.code_use(code, request.client)

    # --- devices ------------------------------------------------------------------------------------------------------

    def validate_device_code(self, client_id: str, device_code: str, request: Request) -> str | None:
        return device_grants.device_load(device_code, request.client, request)

    # --- tokens -------------------------------------------------------------------------------------------------------

    def _save_bearer_token(self, token: dict[str, Any], request: Request, *args: Any, **kwargs: Any) -> None:
        if request.grant_type == "refresh_token":
            refresh.refresh_use(request)
        elif request.grant_type == clients.DEVICE_CODE:
            device_grants.device_use(request)
        issue.tokens_save(request, token)

    def validate_refresh_token(
        self, refresh_token: str, client: TrustedApplication, request: Request, *args: Any, **kwargs: Any
    ) -> bool:
        refresh.refresh_load(refresh_token, client, request)
        return True

    def get_original_scopes(self, refresh_token: str, request: Request, *args: Any, **kwargs: Any) -> list[str]:
        original: list[str] = request.refresh_token_instance.scope.split()
        # oauthlib compares the requested scopes with the returned ones next.
        request.scope = " ".join(scopes.scopes_refresh((request.scope or "").split(), original))
        return original

    def revoke_token(self, token: str, token_type_hint: str, request: Request, *args: Any, **kwargs: Any) -> None:
        issue.token_revoke(token, request.client, by=actor_of_client(request, None, request.client))

    def is_origin_allowed(self, client_id: str, origin: str, request: Request, *args: Any, **kwargs: Any) -> bool:
        return False  # identity.cors handles all endpoints

    # --- the user -----------------------------------------------------------------------------------------------------

    def validate_bearer_token(self, token: str | None, scopes_: list[str], request: Request) -> bool:
        """The user of an access token in the form or in a header, as the API identifies it. Raises PlatformError."""
        identity = authentication.identify_caller(
            self.build_http_request(request), request.access_token, url=clients.endpoint_url(request)
        )
        if identity.is_service:
            raise errors.Forbidden(errors.USER_REQUIRED)
        for scope in scopes_:
            authentication.require_scope_of(identity.scopes, scope)
        request.user = User.objects.get(pk=identity.caller.id)
        request.scopes = identity.scopes
        request.access_token = identity
        return True

    def get_userinfo_claims(self, request: Request) -> claims.Claims:
        """The claims of the scopes, and those of the sign-in."""
        return {**super().get_userinfo_claims(request), **claims_of(request.access_token.authenticated_by)}

    def get_additional_claims(self, request: Request) -> claims.Claims:
        return claims.user_claims(request.user)

    def get_discovery_claims(self, request: Request) -> list[str]:
        return [*claims.PROTOCOL_CLAIMS, *self.oidc_claim_scope]

    def get_id_token_dictionary(
        self, token: dict[str, Any], token_handler: object, request: Request
    ) -> tuple[claims.Claims, datetime.datetime]:
        """The toolkit's claims, with time and session of the sign-in."""
        content, expires = super().get_id_token_dictionary(token, token_handler, request)
        source = issue.source_of(request)
        assert source is not None
        return {**content, **claims.sign_in_claims(source)}, expires

    def finalize_id_token(
        self, id_token: claims.Claims, token: dict[str, Any], token_handler: object, request: Request
    ) -> str:
        """Sign the id token with the node's active key. It is not stored: its signature is enough to verify it."""
        content, _expires = self.get_id_token_dictionary(token, token_handler, request)
        return jwt.sign({**id_token, **content}, type_=jwt.ID_TOKEN_TYPE)
