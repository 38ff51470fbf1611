"""Provider metadata and public keys (OIDC Discovery, 4; RFC 8414; RFC 7517)."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from oauth2_provider.views import ConnectDiscoveryInfoView, JwksInfoView, OAuthServerMetadataView

from identity.client_keys import SIGNING_ALGORITHMS
from identity.factors.methods import ACR_LEVELS
from identity.instance import base_url
from identity.oauth import keys
from identity.oauth.assertions import ASSERTION_ALGORITHMS
from identity.oauth.registration import policy_read
from identity.oauth.responses import RESPONSE_MODES


class ConfigurationView(ConnectDiscoveryInfoView, OAuthServerMetadataView):  # type: ignore[misc]
    """/.well-known/openid-configuration: both metadata documents of the toolkit, with this provider's additions."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        oauth = json.loads(OAuthServerMetadataView.get(self, request).content)
        response: HttpResponse = super().get(request)
        content = {**oauth, **json.loads(response.content)}
        address = base_url(request) + reverse("oauth2_provider:dcr-register")
        policy = policy_read()
        registration = {"registration_endpoint": address} if policy.is_allowed else {}
        authentication = content["token_endpoint_auth_methods_supported"]
        response.content = JsonResponse(
            {
                **content,
                **registration,
                "client_id_metadata_document_supported": bool(policy.document_hosts),
                "response_modes_supported": RESPONSE_MODES,
                "id_token_signing_alg_values_supported": ["RS256"],
                "token_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
                "introspection_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
                "revocation_endpoint_auth_signing_alg_values_supported": ASSERTION_ALGORITHMS,
                "introspection_endpoint_auth_methods_supported": [name for name in authentication if name != "none"],
                "prompt_values_supported": ["none", "login", "consent", "select_account"],
                "acr_values_supported": list(ACR_LEVELS),
                "claims_supported": sorted(content["claims_supported"]),
                "device_authorization_endpoint": base_url(request) + reverse("oauth2_provider:device-authorization"),
                "claim_types_supported": ["normal"],
                "claims_parameter_supported": False,
                "dpop_signing_alg_values_supported": SIGNING_ALGORITHMS,
                "request_parameter_supported": False,
                "pushed_authorization_request_endpoint": self._get_endpoint_url(request, "par", required=True),
                "require_pushed_authorization_requests": False,
                "request_uri_parameter_supported": False,
                "ui_locales_supported": ["en", "bg", "de"],
                "frontchannel_logout_supported": True,
                "frontchannel_logout_session_supported": True,
                "backchannel_logout_supported": True,
                "backchannel_logout_session_supported": True,
            }
        ).content
        return response


class JwksView(JwksInfoView):  # type: ignore[misc]
    """/.well-known/openid-configuration/jwks: the keys of all nodes, which rotate while the process runs."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response: HttpResponse = super().get(request)
        response.content = json.dumps({"keys": keys.key_set().jwks})
        return response
