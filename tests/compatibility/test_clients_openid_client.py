"""openid-client (npm)

A relying party in Node.js, with Chromium as the person's browser.

Front-channel and back-channel logout arrive at a real HTTP server; the back-channel one is sent by the worker process.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from joserfc import jwt
from joserfc.jwk import KeySet
from playwright.sync_api import Browser, sync_playwright

from tests.compatibility.relying_parties import registered
from tests.support.platform import ROOT, LivePlatform
from tests.support.programs import missing, requires_program
from tests.support.receiver import LoopbackReceiver, ReceivedRequest
from tests.support.waiting import eventually

pytestmark = [pytest.mark.process, pytest.mark.browser]
CLIENT_DIRECTORY = ROOT / "tests" / "clients" / "oidc"


class RelyingParty:
    """The Node.js program; says and hears one line of JSON in turn."""

    def __init__(self, node: str, **configuration: str | None) -> None:
        self.process = subprocess.Popen(
            [node, "relying-party.mjs", json.dumps(configuration)],
            cwd=CLIENT_DIRECTORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def says(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            raise AssertionError(self.process.stderr.read())
        return json.loads(line)

    def hears(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()


@pytest.fixture(scope="module")
def node() -> str:
    found = requires_program("node")
    if not (CLIENT_DIRECTORY / "node_modules" / "openid-client").is_dir():
        missing("needs openid-client (make clients)")
    return found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = requires_program("chromium", "google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def arrived(receiver: LoopbackReceiver, path: str) -> ReceivedRequest | None:
    """The request that came to this path of the application."""
    return next((request for request in list(receiver.requests) if request.path.startswith(path)), None)


@pytest.mark.parametrize("public", [False, True])
def test_openid_client_goes_the_whole_way(
    live_platform: LivePlatform, node: str, chromium: Browser, public: bool
) -> None:
    """Discovery, code flow with PKCE, ID token, userinfo, refresh, single sign-out by front and back channel."""
    name = f"OpenidClient{'Public' if public else 'Confidential'}"
    issuer = f"{live_platform.base_url}/id"
    with registered(live_platform, name, *(["--public"] if public else [])) as (receiver, secret):
        party = RelyingParty(
            node,
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
        assert party.process.wait(30) == 0

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
    keys = KeySet.import_key_set(requests.get(f"{issuer}/.well-known/openid-configuration/jwks", timeout=30).json())
    read = jwt.decode(token, keys, algorithms=["RS256"])
    assert read.header["typ"] == "logout+jwt"
    found = read.claims
    assert (found["iss"], found["aud"], found["sub"]) == (issuer, audience, claims["sub"])
    assert found["sid"] == claims["sid"]
    assert found["events"] == {"http://schemas.openid.net/event/backchannel-logout": {}}
    assert "nonce" not in found
    assert found["jti"]
