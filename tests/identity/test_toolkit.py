"""The endpoints are django-oauth-toolkit's views, and agree with it on the issuer."""

from __future__ import annotations

from urllib.parse import urlencode

import jwt
import pytest
from django.test import Client
from django.urls import resolve, reverse
from oauth2_provider import views

from tests.identity.flows import SECRET, SERVICE

FORM = "application/x-www-form-urlencoded"
ENDPOINTS = {
    "oidc-connect-discovery-info": views.ConnectDiscoveryInfoView,
    "jwks-info": views.JwksInfoView,
    "authorize": views.base.BaseAuthorizationView,
    "token": views.TokenView,
    "revoke-token": views.RevokeTokenView,
    "introspect": views.IntrospectTokenView,
    "user-info": views.UserInfoView,
    "rp-initiated-logout": views.RPInitiatedLogoutView,
}


@pytest.mark.parametrize("name", ENDPOINTS)
def test_each_endpoint_is_a_view_of_the_toolkit(name: str) -> None:
    view = resolve(reverse(f"oauth2_provider:{name}")).func
    assert issubclass(view.view_class, ENDPOINTS[name])  # type: ignore[attr-defined]


@pytest.mark.parametrize("secure", [False, True])
def test_tokens_have_the_issuer_of_the_metadata(http: Client, secure: bool) -> None:
    """Whatever headers a client invents, such as those that the toolkit uses inside."""
    invented = {"X-Issuer": "https://evil.example/id", "X-Django-Oauth-Toolkit-Secure": "1"}
    issuer = http.get("/id/.well-known/openid-configuration", headers=invented, secure=secure).json()["issuer"]
    assert issuer == f"{'https' if secure else 'http'}://testserver/id"
    form = {"grant_type": "client_credentials", "client_id": SERVICE, "client_secret": SECRET}
    response = http.post("/id/connect/token", urlencode(form), FORM, headers=invented, secure=secure)
    claims = jwt.decode(response.json()["access_token"], options={"verify_signature": False})
    assert claims["iss"] == issuer
