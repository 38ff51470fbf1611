"""simple-oauth2 (npm)"""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page

from tests.compatibility.relying_parties import LineProgram, registered, sign_in
from tests.identity.flows import SECRET, SERVICE
from tests.support.chromium import launched
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.process, pytest.mark.browser]


def _code(page: Page, url: str, redirect_uri: str, *, signed_in: bool) -> str:
    """The code that the authorization endpoint sends to the application."""
    page.goto(url)
    if not signed_in:
        sign_in(page, "demo")
    page.wait_for_url(f"{redirect_uri}**")
    return parse_qs(urlsplit(page.url).query)["code"][0]


@pytest.fixture(scope="module")
def seen(live_platform: LivePlatform) -> dict[str, Any]:
    """What the program saw on its whole way."""
    name = f"SimpleOauth2{secrets.token_hex(4)}"
    with registered(live_platform, name) as (receiver, secret), launched() as browser:
        redirect_uri = f"{receiver.url}/callback"
        party = LineProgram(
            "oauth",
            "simple-oauth2.mjs",
            issuer=f"{live_platform.base_url}/id",
            apiUrl=f"{live_platform.odata_url}General_Currencies_Currencies?$top=1",
            clientId=name,
            clientSecret=secret,
            serviceId=SERVICE,
            serviceSecret=SECRET,
            redirectUri=redirect_uri,
            scope="openid offline_access read",
        )
        page = browser.new_context().new_page()
        party.hears(_code(page, party.says()["url"], redirect_uri, signed_in=False))
        found: dict[str, Any] = party.says()
        party.hears(_code(page, found["again"], redirect_uri, signed_in=True))
        found |= party.says()
    assert party.process.wait(60) == 0
    return found


def test_client_credentials_and_revocation(seen: dict[str, Any]) -> None:
    """Client credentials by header and by body; revocation ends the token at once."""
    assert seen["services"] == [{"scope": "read", "before": 200, "expired": False, "after": 401}] * 2


def test_refusals(seen: dict[str, Any]) -> None:
    """Bad input: a wrong secret, a scope beyond the application's, a wrong code_verifier, each with its error code."""
    assert seen["refused"] == ["invalid_client", "invalid_scope"]
    assert seen["unproved"] == "invalid_grant"


def test_code_flow_with_refresh(seen: dict[str, Any]) -> None:
    """Code flow with PKCE; refresh rotates the refresh token; both access tokens work; ID token."""
    assert (seen["called"], seen["rotated"], seen["idToken"]) == ([200, 200], True, True)


def test_revoke_all(seen: dict[str, Any]) -> None:
    """`revokeAll` ends access and refresh token."""
    assert (seen["revoked"], seen["deadRefresh"]) == (401, "invalid_grant")
