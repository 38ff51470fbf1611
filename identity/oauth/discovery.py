"""Provider metadata and public keys (OIDC Discovery, 4; RFC 8414; RFC 7517)."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse

from foundation.safe_views import reads_only
from identity import cors, instance
from identity.oauth import keys
from identity.oauth.responses import RESPONSE_MODES
from identity.oauth.validator import RESPONSE_TYPES
from identity.scopes import ALL_SCOPES

_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]
# A rotated key signs at once; clients fetch the keys again for an unknown kid.
_JWKS_SECONDS = 300
CLAIMS = [
    "iss", "aud", "iat", "exp", "sub", "id", "sid", "auth_time", "nonce", "at_hash", "c_hash", "name",
    "preferred_username", "locale", "user_type", "is_admin", "email", "email_verified",
]  # fmt: skip


@reads_only
@cors.for_everybody
def configuration(request: HttpRequest) -> HttpResponse:
    """/.well-known/openid-configuration."""
    issuer = instance.issuer(request)
    return JsonResponse(
        {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/connect/authorize",
            "token_endpoint": f"{issuer}/connect/token",
            "userinfo_endpoint": f"{issuer}/connect/userinfo",
            "revocation_endpoint": f"{issuer}/connect/revocation",
            "introspection_endpoint": f"{issuer}/connect/introspect",
            "end_session_endpoint": f"{issuer}/connect/endsession",
            "jwks_uri": f"{issuer}/.well-known/openid-configuration/jwks",
            "scopes_supported": list(ALL_SCOPES),
            "response_types_supported": list(RESPONSE_TYPES),
            "response_modes_supported": list(RESPONSE_MODES),
            "grant_types_supported": ["authorization_code", "client_credentials", "refresh_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": [*_AUTH_METHODS, "none"],
            "revocation_endpoint_auth_methods_supported": [*_AUTH_METHODS, "none"],
            "introspection_endpoint_auth_methods_supported": _AUTH_METHODS,
            "code_challenge_methods_supported": ["S256"],
            "prompt_values_supported": ["none", "login", "consent", "select_account"],
            "claims_supported": CLAIMS,
            "claim_types_supported": ["normal"],
            "claims_parameter_supported": False,
            "request_parameter_supported": False,
            "request_uri_parameter_supported": False,
            "ui_locales_supported": ["en", "bg", "de"],
            "authorization_response_iss_parameter_supported": True,
            "frontchannel_logout_supported": True,
            "frontchannel_logout_session_supported": True,
            "backchannel_logout_supported": True,
            "backchannel_logout_session_supported": True,
        }
    )


@reads_only
@cors.for_everybody
def jwks(request: HttpRequest) -> HttpResponse:
    """/.well-known/openid-configuration/jwks."""
    response = JsonResponse({"keys": list(keys.key_set().jwks)})
    response.headers["Cache-Control"] = f"public, max-age={_JWKS_SECONDS}"
    return response
