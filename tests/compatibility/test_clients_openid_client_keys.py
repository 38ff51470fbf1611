"""openid-client (npm), with keys

private_key_jwt, pushed authorization requests, DPoP with its nonce, device flow and token exchange, with Chromium as the
person's browser.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import jwt
import pytest
import requests
from playwright.sync_api import Browser

from tests.compatibility.node_clients import service_token
from tests.compatibility.relying_parties import LineProgram, sign_in
from tests.support.platform import LivePlatform
from tests.support.receiver import Answer, LoopbackReceiver

pytestmark = [pytest.mark.process, pytest.mark.browser, pytest.mark.once]
NAME, DEVICE, SECRET = "OpenidClientKeys", "OpenidClientDevice", "a-secret-of-the-device"


@pytest.fixture
def administrator(live_platform: LivePlatform) -> Iterator[requests.Session]:
    """Calls of the demo's service, which may register applications."""
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {service_token(live_platform)}"
        yield session


def register(administrator: requests.Session, root: str, application: dict[str, object]) -> None:
    made = administrator.post(f"{root}/Systems_Security_TrustedApplications", json=application, timeout=30)
    assert made.status_code == 201, made.text


def test_openid_client_uses_its_keys(
    live_platform: LivePlatform, administrator: requests.Session, chromium: Browser
) -> None:
    """private_key_jwt, pushed authorization request, sign-in, refresh and API calls with DPoP-bound tokens"""
    base = live_platform.base_url
    root = f"{base}/api/domain/odata"
    with LoopbackReceiver(default=Answer(body=b"the application", headers={"Content-Type": "text/html"})).running() as own:
        redirect = f"{own.url}/callback"
        party = LineProgram(
            "oidc", "bound.mjs", issuer=f"{base}/id", clientId=NAME, api=f"{root}/General_Currencies_Currencies?$top=1",
            redirectUri=redirect,
        )  # fmt: skip
        users = administrator.get(f"{root}/Systems_Security_Users?$filter=Login eq 'service'", timeout=30).json()["value"]
        register(administrator, root, {
            "ApplicationUri": NAME, "Name": NAME, "Scope": "openid read offline_access",
            "ClientAuthentication": "PrivateKeyJwt", "JsonWebKeySet": json.dumps(party.says()),
            "DpopRequired": True, "PushedRequestsRequired": True,
            "SystemUserAllowed": True, "SystemUser": {"@odata.id": users[0]["@odata.id"]},
            "ImpersonateAsInternalUserAllowed": True,
            "ImpersonateLoginUrl": redirect, "ImpersonateLogoutUrl": redirect,
        })  # fmt: skip

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
        assert party.process.wait(30) == 0


def test_openid_client_connects_a_device(
    live_platform: LivePlatform, administrator: requests.Session, chromium: Browser
) -> None:
    """Device flow with a person who presses Allow, token exchange with `act`"""
    base = live_platform.base_url
    root = f"{base}/api/domain/odata"
    register(administrator, root, {
        "ApplicationUri": DEVICE, "Name": "Screen in the shop", "Scope": "openid read",
        "ApplicationSecretHash": base64.b64encode(hashlib.sha256(SECRET.encode()).digest()).decode(),
        "DeviceFlowAllowed": True, "ImpersonateAsInternalUserAllowed": True,
    })  # fmt: skip
    service = f"{root}/Systems_Security_TrustedApplications?$filter=ApplicationUri eq 'ServiceDemoClient'"
    found = administrator.get(service, timeout=30).json()["value"][0]
    address = f"{root}/{found['@odata.id']}"
    done = administrator.patch(address, json={"TokenExchangeApplications": DEVICE}, timeout=30)
    assert done.status_code in (200, 204), done.text

    device, own = {"id": DEVICE, "secret": SECRET}, {"id": "ServiceDemoClient", "secret": "DEMO"}
    party = LineProgram("oidc", "device.mjs", issuer=f"{base}/id", device=device, service=own)
    told = party.says()
    page = chromium.new_context().new_page()
    page.goto(told["url"])
    sign_in(page, "admin")
    page.wait_for_selector("#user_code")
    assert page.input_value("#user_code") == told["code"]
    page.click("button[type=submit]")
    assert told["code"] in page.inner_text("main")
    page.click("button[value=allow]")
    assert "The device is connected" in page.inner_text("main")

    told = party.says()
    assert told["claims"]["sub"] == "admin"
    exchanged = jwt.decode(told["token"], options={"verify_signature": False})
    assert (exchanged["sub"], exchanged["act"], told["scope"]) == ("admin", {"sub": "ServiceDemoClient"}, "read")
    assert told["issued"] == "urn:ietf:params:oauth:token-type:access_token"
    assert told["stranger"] == "unauthorized_client"
    headers = {"Authorization": f"Bearer {told['token']}"}
    assert requests.get(f"{base}/profile/me", headers=headers, timeout=30).json()["login"] == "admin"
    assert party.process.wait(30) == 0
