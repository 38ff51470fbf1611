"""openid-client (npm), with keys

private_key_jwt, pushed authorization requests, DPoP with its nonce, device flow and token exchange, with Chromium as
the person's browser.
"""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlsplit

import jwt
import pytest
import requests
from playwright.sync_api import Browser

from tests.compatibility.relying_parties import LineProgram, allow_device, sign_in
from tests.support.platform import LivePlatform
from tests.support.receiver import Answer, LoopbackReceiver
from tests.support.registrations import administrator_of, hash_of

pytestmark = [pytest.mark.process, pytest.mark.browser, pytest.mark.once]
NAME, DEVICE, SECRET = "OpenidClientKeys", "OpenidClientDevice", "a-secret-of-the-device"


def test_openid_client_uses_its_keys(live_platform: LivePlatform, chromium: Browser) -> None:
    """private_key_jwt, pushed authorization request, sign-in, refresh and API calls with DPoP-bound tokens"""
    base = live_platform.base_url
    answer = Answer(body=b"the application", headers={"Content-Type": "text/html"})
    with LoopbackReceiver(default=answer).running() as receiver, administrator_of(live_platform) as administrator:
        redirect = f"{receiver.url}/callback"
        party = LineProgram(
            "oidc", "bound.mjs", issuer=f"{base}/id", clientId=NAME, redirectUri=redirect,
            api=f"{base}/api/domain/odata/General_Currencies_Currencies?$top=1",
        )  # fmt: skip
        administrator.register(
            NAME, Scope="openid read offline_access", ClientAuthentication="PrivateKeyJwt",
            JsonWebKeySet=json.dumps(party.says()), DpopRequired=True, PushedRequestsRequired=True,
            SystemUserAllowed=True, SystemUser=administrator.user("service"),
            ImpersonateAsInternalUserAllowed=True, ImpersonateLoginUrl=redirect, ImpersonateLogoutUrl=redirect,
        )  # fmt: skip

        party.hears("registered")
        told = party.says()
        assert (told["tokenType"].lower(), told["status"], told["stolen"]) == ("dpop", 200, 401)
        assert dict(parse_qsl(urlsplit(told["url"]).query)).keys() == {"client_id", "request_uri"}

        page = chromium.new_context().new_page()
        page.goto(told["url"])
        sign_in(page, "admin")
        page.wait_for_url(f"{redirect}**")
        party.hears(page.url)
        told = party.says()
        assert (told["sub"], told["tokenType"].lower(), told["statuses"]) == ("admin", "dpop", [200, 200])
        assert told["foreignKey"] == 401
        assert party.process.wait(60) == 0


def test_openid_client_connects_a_device(live_platform: LivePlatform, chromium: Browser) -> None:
    """Device flow with a person who presses Allow, token exchange with `act`"""
    base = live_platform.base_url
    with administrator_of(live_platform) as administrator:
        administrator.register(
            DEVICE, Scope="openid read", ApplicationSecretHash=hash_of(SECRET), DeviceFlowAllowed=True,
            ImpersonateAsInternalUserAllowed=True,
        )  # fmt: skip
        administrator.change("ServiceDemoClient", TokenExchangeApplications=DEVICE)

    device, service = {"id": DEVICE, "secret": SECRET}, {"id": "ServiceDemoClient", "secret": "DEMO"}
    party = LineProgram("oidc", "device.mjs", issuer=f"{base}/id", device=device, service=service)
    told = party.says()
    allow_device(chromium.new_context().new_page(), told["url"], told["code"], "admin")

    told = party.says()
    assert told["claims"]["sub"] == "admin"
    exchanged = jwt.decode(told["token"], options={"verify_signature": False})
    assert (exchanged["sub"], exchanged["act"], told["scope"]) == ("admin", {"sub": "ServiceDemoClient"}, "read")
    assert told["issued"] == "urn:ietf:params:oauth:token-type:access_token"
    assert told["stranger"] == "unauthorized_client"
    headers = {"Authorization": f"Bearer {told['token']}"}
    assert requests.get(f"{base}/profile/me", headers=headers, timeout=60).json()["login"] == "admin"
    assert party.process.wait(60) == 0
