"""openid-client (npm)

A relying party in Node.js, with Chromium as the person's browser.

Front-channel and back-channel logout arrive at a real HTTP server; the back-channel one is sent by the worker process.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from joserfc import jwt
from joserfc.jwk import KeySet
from playwright.sync_api import Browser

from tests.compatibility.relying_parties import LineProgram, registered
from tests.support.platform import LivePlatform
from tests.support.receiver import LoopbackReceiver, ReceivedRequest
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.browser]


def arrived(receiver: LoopbackReceiver, path: str) -> ReceivedRequest | None:
    """The request that came to this path of the application."""
    return next((request for request in list(receiver.requests) if request.path.startswith(path)), None)


@pytest.mark.parametrize("public", [False, True])
def test_openid_client_goes_the_whole_way(live_platform: LivePlatform, chromium: Browser, public: bool) -> None:
    """Discovery, code flow with PKCE, ID token, userinfo, refresh, single sign-out by front and back channel."""
    name = f"OpenidClient{'Public' if public else 'Confidential'}"
    issuer = f"{live_platform.base_url}/id"
    with registered(live_platform, name, *(["--public"] if public else [])) as (receiver, secret):
        party = LineProgram(
            "oidc",
            "relying-party.mjs",
            issuer=issuer,
            clientId=name,
            clientSecret=secret,
            redirectUri=f"{receiver.url}/callback",
            postLogoutRedirectUri=f"{receiver.url}/bye",
            scope="openid profile email read" if public else "openid profile email offline_access read",
        )
        page = chromium.new_context().new_page()
        page.goto(party.says()["url"])
        page.fill("[name=login]", "demo")
        page.fill("[name=password]", "demo")
        page.click("button")
        page.wait_for_url(f"{receiver.url}/callback**")

        party.hears(page.url)
        told = party.says()
        assert (told["claims"]["iss"], told["claims"]["aud"], told["claims"]["sub"]) == (issuer, name, "demo")
        assert told["userinfo"]["sub"] == "demo"
        assert told["userinfo"]["email"] == "demo@example.com"
        assert 3000 < told["expiresIn"] <= 3600
        assert told["codeReuse"] == "invalid_grant"
        assert told["refreshed"] == (None if public else {"rotated": True, "sub": "demo"})

        party.hears("")
        page.goto(party.says()["url"])
        page.wait_for_url(f"{receiver.url}/bye?state=bye")
        assert party.process.wait(60) == 0

        assert eventually(lambda: arrived(receiver, "/front") is not None)
        front = arrived(receiver, "/front")
        assert front is not None
        assert parse_qs(urlsplit(front.path).query) == {"iss": [issuer], "sid": [told["claims"]["sid"]]}
        # The worker looks for tasks several times a second; the machine may be busy.
        assert eventually(lambda: arrived(receiver, "/back") is not None, timeout_seconds=60)
        back = arrived(receiver, "/back")
        assert back is not None
        assert back.method == "POST"
        check_logout_token(parse_qs(back.body.decode())["logout_token"][0], issuer, name, told["claims"])


def check_logout_token(token: str, issuer: str, audience: str, claims: dict[str, Any]) -> None:
    """OpenID Connect Back-Channel Logout 1.0, 2.6."""
    keys = KeySet.import_key_set(requests.get(f"{issuer}/.well-known/openid-configuration/jwks", timeout=60).json())
    read = jwt.decode(token, keys, algorithms=["RS256"])
    assert read.header["typ"] == "logout+jwt"
    found = read.claims
    assert (found["iss"], found["aud"], found["sub"]) == (issuer, audience, claims["sub"])
    assert found["sid"] == claims["sid"]
    assert found["events"] == {"http://schemas.openid.net/event/backchannel-logout": {}}
    assert "nonce" not in found
    assert found["jti"]
