"""openid-client (npm), with keys

private_key_jwt, pushed authorization requests and DPoP with its nonce.
"""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

from tests.compatibility.relying_parties import LineProgram
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.once]
NAME = "OpenidClientKeys"


def test_openid_client_uses_its_keys(live_platform: LivePlatform) -> None:
    """private_key_jwt, pushed authorization request, API call with a DPoP-bound token"""
    base, redirect = live_platform.base_url, "http://127.0.0.1:5999/callback"
    root = f"{base}/api/domain/odata"
    party = LineProgram(
        "oidc", "bound.mjs", issuer=f"{base}/id", clientId=NAME, api=f"{root}/General_Currencies?$top=1",
        redirectUri=redirect,
    )  # fmt: skip
    form = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    token = requests.post(f"{base}/id/connect/token", data=form, timeout=30).json()["access_token"]
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token}"
    users = session.get(f"{root}/Systems_Security_Users?$filter=Login eq 'service'", timeout=30).json()["value"]
    application = {
        "ApplicationUri": NAME, "Name": NAME, "Scope": "openid read", "ClientAuthentication": "PrivateKeyJwt",
        "JsonWebKeySet": json.dumps(party.says()), "DpopRequired": True, "PushedRequestsRequired": True,
        "SystemUserAllowed": True, "SystemUser": {"@odata.id": users[0]["@odata.id"]},
        "ImpersonateAsInternalUserAllowed": True, "ImpersonateLoginUrl": redirect, "ImpersonateLogoutUrl": redirect,
    }  # fmt: skip
    made = session.post(f"{root}/Systems_Security_TrustedApplications", json=application, timeout=30)
    assert made.status_code == 201, made.text

    party.hears("registered")
    told = party.says()
    assert (told["tokenType"].lower(), told["status"], told["stolen"]) == ("dpop", 200, 401)
    assert dict(parse_qsl(urlsplit(told["url"]).query)).keys() == {"client_id", "request_uri"}
    page = requests.get(told["url"], timeout=30)
    assert "/id/account/login" in page.url
    assert party.process.wait(30) == 0
