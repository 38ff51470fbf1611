"""oauthlib's request validator: each callback calls a function of the module that owns the subject.

Other callbacks are the toolkit's.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.common import Request
from oauthlib.oauth2.rfc6749.errors import InvalidClientError

from identity.models import TrustedApplication
from identity.oauth import clients, codes, issue, refresh, scopes

RESPONSE_TYPES = ("code", "code id_token")


class Validator(OAuth2Validator):  # type: ignore[misc]
    """Results of earlier steps are attributes of the oauthlib request: client, user, sid, token_family …"""

    # --- the client ---------------------------------------------------------------------------------------------------

    def _load_application(self, client_id: str, request: Request) -> TrustedApplication | None:
        if isinstance(request.client, TrustedApplication) and request.client.client_id == client_id:
            return request.client
        loaded = clients.client_load(client_id or "")
        # The service half exists only at the token endpoint, where authenticate_client loads it.
        application = loaded.application if loaded and not loaded.service_half else None
        request.client = application
        return application

    def client_authentication_required(self, request: Request, *args: Any, **kwargs: Any) -> bool:
        """Always: public clients authenticate without a secret."""
        return True

    def authenticate_client(self, request: Request, *args: Any, **kwargs: Any) -> bool:
        credentials = clients.credentials_read(
            request.headers.get("Authorization", ""), request.client_id, request.client_secret
        )
        loaded = clients.client_authenticate(credentials)
        if loaded is None:
            raise InvalidClientError(description="Unknown client, or wrong client secret.")
        request.client = loaded.application
        request.client_id = loaded.application.client_id
        request.service_half = loaded.service_half
        return True

    def validate_grant_type(
        self, client_id: str, grant_type: str, client: TrustedApplication, request: Request, *args: Any, **kwargs: Any
    ) -> bool:
        clients.check_grant(client, grant_type, service_half=request.service_half)
        return True

    def validate_response_type(
        self, client_id: str, response_type: str, client: TrustedApplication, request: Request, *a: Any, **kw: Any
    ) -> bool:
        return response_type in RESPONSE_TYPES and client.is_interactive

    # --- scopes -------------------------------------------------------------------------------------------------------

    def validate_scopes(
        self, client_id: str, scopes_: list[str], client: TrustedApplication, request: Request, *a: Any, **kw: Any
    ) -> bool:
        service = request.grant_type == "client_credentials"
        request.scopes = scopes.scopes_grant(client, (request.scope or "").split(), service=service)
        return True

    def get_default_scopes(self, client_id: str, request: Request, *args: Any, **kwargs: Any) -> list[str]:
        return list(request.client.scopes)

    # --- authorization codes ------------------------------------------------------------------------------------------

    def is_pkce_required(self, client_id: str, request: Request) -> bool:
        """Public clients need PKCE (RFC 9700, 2.1.1); confidential ones may use it."""
        return bool(request.client.is_public)

    def save_authorization_code(
        self, client_id: str, code: dict[str, str], request: Request, *a: Any, **k: Any
    ) -> None:
        codes.code_save(request, code["code"])

    def get_authorization_code_scopes(
        self, client_id: str, code: str, redirect_uri: str, request: Request
    ) -> list[str]:
        return ["openid"]  # one handler serves all response types; it adds an id token only if openid was granted

    def validate_code(
        self, client_id: str, code: str, client: TrustedApplication, request: Request, *args: Any, **kwargs: Any
    ) -> bool:
        codes.code_load(code, client, request)
        return True

    def get_code_challenge(self, code: str, request: Request) -> str | None:
        return request.grant.code_challenge or None

    def get_code_challenge_method(self, code: str, request: Request) -> str | None:
        return request.grant.code_challenge_method or None

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

    # --- tokens -------------------------------------------------------------------------------------------------------

    def save_bearer_token(self, token: dict[str, Any], request: Request, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic():
            if request.grant_type == "refresh_token":
                refresh.refresh_use(request)
            issue.tokens_save(request, token)

    def get_id_token(self, token: dict[str, Any], token_handler: object, request: Request) -> str:
        return issue.id_token_create(request, token)

    def validate_refresh_token(
        self, refresh_token: str, client: TrustedApplication, request: Request, *args: Any, **kwargs: Any
    ) -> bool:
        refresh.refresh_load(refresh_token, client, request)
        return True

    def get_original_scopes(self, refresh_token: str, request: Request, *args: Any, **kwargs: Any) -> list[str]:
        original: list[str] = request.refresh_token_instance.scope.split()
        return original

    def rotate_refresh_token(self, request: Request) -> bool:
        return True

    def revoke_token(self, token: str, token_type_hint: str, request: Request, *args: Any, **kwargs: Any) -> None:
        issue.token_revoke(token, request.client)

    def is_origin_allowed(self, client_id: str, origin: str, request: Request, *args: Any, **kwargs: Any) -> bool:
        return False  # identity.cors handles all endpoints
