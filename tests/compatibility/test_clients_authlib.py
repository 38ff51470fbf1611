"""Authlib

A relying party in Python, with Chromium as the person's browser. Authlib knows private_key_jwt and PKCE, and has
generic calls for the device flow and token exchange. It has neither pushed authorization requests nor DPoP: the first
is a POST of its session, and proofs are made by an adapter of requests below it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Auth, OAuth2Session
from authlib.oauth2.rfc6750 import add_bearer_token
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet
from playwright.sync_api import Browser
from requests.adapters import HTTPAdapter

from tests.compatibility.relying_parties import allow_device, sign_in
from tests.support.platform import LivePlatform
from tests.support.receiver import Answer, LoopbackReceiver
from tests.support.registrations import administrator_of, hash_of

pytestmark = [pytest.mark.process, pytest.mark.browser, pytest.mark.once]
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class ProvingAdapter(HTTPAdapter):
    """Sends a DPoP proof with each request."""

    def __init__(self) -> None:
        super().__init__()
        self.key = ECKey.generate_key("P-256")
        self.nonce = ""

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        request.headers["DPoP"] = self._proof(request)
        return super().send(request, *args, **kwargs)

    def _proof(self, request: requests.PreparedRequest) -> str:
        claims = {"jti": secrets.token_urlsafe(), "htm": request.method, "htu": str(request.url).partition("?")[0],
                  "iat": int(time.time()), "nonce": self.nonce}  # fmt: skip
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme == "DPoP":
            claims["ath"] = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).decode().rstrip("=")
        header = {"alg": "ES256", "typ": "dpop+jwt", "jwk": self.key.as_dict(private=False)}
        return jwt.encode(header, claims, self.key)


def add_dpop_token(token: str, uri: str, headers: dict[str, str], body: Any, placement: str) -> Any:
    """As Authlib's function for bearer tokens."""
    uri, headers, body = add_bearer_token(token, uri, headers, body, placement)
    return uri, {**headers, "Authorization": f"DPoP {token}"}, body


class BoundAuth(OAuth2Auth):  # type: ignore[misc]
    """Authlib's authentication by token, for DPoP-bound ones too."""

    SIGN_METHODS = {**OAuth2Auth.SIGN_METHODS, "dpop": add_dpop_token}


class BoundSession(OAuth2Session):  # type: ignore[misc]
    """A session with private_key_jwt and DPoP."""

    token_auth_class = BoundAuth

    def __init__(self, client_id: str, key: ECKey, audience: str, **options: Any) -> None:
        super().__init__(client_id, key, token_endpoint_auth_method="private_key_jwt", **options)
        self.register_client_auth_method(PrivateKeyJWT(audience, alg="ES256"))
        self.prover = ProvingAdapter()
        self.mount("http://", self.prover)

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """Once more with the nonce that the server asks for (RFC 9449, 8), and with a new assertion."""
        response: requests.Response = super().request(*args, **kwargs)
        if response.status_code in (400, 401) and "DPoP-Nonce" in response.headers:
            self.prover.nonce = response.headers["DPoP-Nonce"]
            response = super().request(*args, **kwargs)
        return response


def metadata_of(platform: LivePlatform) -> dict[str, Any]:
    url = f"{platform.base_url}/id/.well-known/openid-configuration"
    found: dict[str, Any] = requests.get(url, timeout=60).json()
    return found


def test_authlib_signs_in_as_fapi_2_asks(live_platform: LivePlatform, chromium: Browser) -> None:
    """private_key_jwt, pushed authorization request, PKCE, `iss`, DPoP-bound access and refresh tokens"""
    name, metadata, key = "AuthlibKeys", metadata_of(live_platform), ECKey.generate_key("P-256")
    api = f"{live_platform.base_url}/api/domain/odata/General_Currencies_Currencies?$top=1"
    answer = Answer(body=b"the application", headers={"Content-Type": "text/html"})
    with LoopbackReceiver(default=answer).running() as receiver, administrator_of(live_platform) as administrator:
        redirect = f"{receiver.url}/callback"
        administrator.register(
            name, Scope="openid read offline_access", ClientAuthentication="PrivateKeyJwt",
            JsonWebKeySet=json.dumps({"keys": [key.as_dict(private=False)]}), DpopRequired=True,
            PushedRequestsRequired=True, ImpersonateAsInternalUserAllowed=True, ImpersonateLoginUrl=redirect,
            ImpersonateLogoutUrl=redirect,
        )  # fmt: skip
        client = BoundSession(name, key, metadata["issuer"], redirect_uri=redirect)
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe()
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        pushed = client.post(
            metadata["pushed_authorization_request_endpoint"],
            data={"client_id": name, "response_type": "code", "redirect_uri": redirect, "state": state,
                  "scope": "openid read offline_access", "code_challenge": challenge, "code_challenge_method": "S256"},
            auth=client.client_auth("private_key_jwt"), withhold_token=True,
        )  # fmt: skip
        assert pushed.status_code == 201, pushed.text
        url, _ = client.create_authorization_url(
            metadata["authorization_endpoint"], state=state, request_uri=pushed.json()["request_uri"]
        )
        page = chromium.new_context().new_page()
        page.goto(url)
        sign_in(page, "admin")
        page.wait_for_url(f"{redirect}**")

    assert parse_qs(urlsplit(page.url).query)["iss"] == [metadata["issuer"]]
    token = client.fetch_token(
        metadata["token_endpoint"], authorization_response=page.url, state=state, code_verifier=verifier
    )
    assert token["token_type"] == "DPoP"
    assert client.get(api).status_code == 200
    assert client.get(metadata["userinfo_endpoint"]).json()["sub"] == "admin"
    first = token["access_token"]
    assert client.refresh_token(metadata["token_endpoint"])["access_token"] != first
    assert client.get(api).status_code == 200
    # A bearer of the token, and the holder of another key, are refused.
    stolen = client.token["access_token"]
    assert requests.get(api, headers={"Authorization": f"Bearer {stolen}"}, timeout=60).status_code == 401
    thief = BoundSession(name, key, metadata["issuer"], token=client.token)
    assert thief.get(api).status_code == 401


def test_authlib_connects_a_device_and_acts_for_its_user(live_platform: LivePlatform, chromium: Browser) -> None:
    """Device flow with a person who presses Allow, token exchange with `act`"""
    name, secret, metadata = "AuthlibDevice", "a-secret-of-the-device", metadata_of(live_platform)
    with administrator_of(live_platform) as administrator:
        administrator.register(
            name, Scope="openid read", ApplicationSecretHash=hash_of(secret), DeviceFlowAllowed=True,
            ImpersonateAsInternalUserAllowed=True,
        )  # fmt: skip
        administrator.register(
            "AuthlibService", Scope="read", ApplicationSecretHash=hash_of(secret), SystemUserAllowed=True,
            SystemUser=administrator.user("service"), TokenExchangeApplications=name,
        )  # fmt: skip
    device = OAuth2Session(name, secret)
    started = device.post(
        metadata["device_authorization_endpoint"],
        data={"scope": "openid read"}, auth=device.client_auth("client_secret_basic"), withhold_token=True,
    ).json()  # fmt: skip

    page = chromium.new_context().new_page()
    allow_device(page, started["verification_uri_complete"], started["user_code"], "admin")
    token = device.fetch_token(metadata["token_endpoint"], grant_type=DEVICE_CODE, device_code=started["device_code"])[
        "access_token"
    ]

    service = OAuth2Session("AuthlibService", secret)
    exchanged = service.fetch_token(
        metadata["token_endpoint"], grant_type=TOKEN_EXCHANGE, subject_token=token, subject_token_type=ACCESS_TOKEN
    )
    keys = requests.get(metadata["jwks_uri"], timeout=60).json()
    claims = jwt.decode(exchanged["access_token"], KeySet.import_key_set(keys), algorithms=["RS256"]).claims
    assert (claims["sub"], claims["act"]) == ("admin", {"sub": "AuthlibService"})
    assert service.get(f"{live_platform.base_url}/profile/me").json()["login"] == "admin"
