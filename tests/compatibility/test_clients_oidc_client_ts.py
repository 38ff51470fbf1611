"""oidc-client-ts (npm)

A single-page application in Chromium: its page has an origin of its own, so CORS takes part.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.compatibility.node_clients import packages_of
from tests.compatibility.relying_parties import registered, sign_in
from tests.support.platform import LivePlatform
from tests.support.receiver import LoopbackReceiver

pytestmark = [pytest.mark.process, pytest.mark.browser]

# In the iframe of a silent renewal the callback page tells the library's instance in the page around it.
_IN_IFRAME = b""";
    if (window.parent !== window) {
      const nothing = { authority: "-", client_id: "-", redirect_uri: "-" };
      new oidc.UserManager(nothing).signinSilentCallback();
    }
"""
_MANAGER = "const manager = new oidc.UserManager(settings);"
_WHAT_A_USER_IS = """
    const told = (user) => user && {
      sub: user.profile.sub, email: user.profile.email, scope: user.scope, token: user.access_token,
      refresh: user.refresh_token ?? null, state: user.state, expiresIn: user.expires_in,
    };
"""


class Application:
    """The page of the application at its own server, and calls of the library in it."""

    def __init__(self, browser: Browser, platform: LivePlatform, receiver: LoopbackReceiver, **settings: Any) -> None:
        self.base_url = platform.base_url
        self.callback, self.bye = f"{receiver.url}/callback", f"{receiver.url}/bye"
        self.settings = {
            "authority": f"{self.base_url}/id",
            "redirect_uri": self.callback,
            "silent_redirect_uri": self.callback,
            "post_logout_redirect_uri": self.bye,
            "response_type": "code",
            "loadUserInfo": True,
            "automaticSilentRenew": False,
            **settings,
        }
        self.page: Page = browser.new_context().new_page()
        self.page.set_default_timeout(30_000)
        self.page.goto(f"{receiver.url}/")

    def does(self, body: str) -> Any:
        """Run statements with `manager` and `told`; what they return."""
        return self.page.evaluate(f"async (settings) => {{ {_MANAGER} {_WHAT_A_USER_IS} {body} }}", self.settings)

    def signed_in(self) -> Any:
        """Sign the demo user in; the user as the library sees them."""
        self.does("void manager.signinRedirect({ state: { from: 'test' } });")
        self.page.wait_for_url(f"{self.base_url}/id/**")
        sign_in(self.page, "demo")
        self.page.wait_for_url(f"{self.callback}**")
        return self.does("return told(await manager.signinCallback());")

    def calls_the_api(self, token: str) -> int:
        """Status of a request of the page's script to the Domain API."""
        url = f"{self.base_url}/api/domain/odata/General_Currencies_Currencies?$top=1"
        asked = "async ([url, token]) => (await fetch(url, { headers: { Authorization: `Bearer ${token}` } })).status"
        return int(self.page.evaluate(asked, [url, token]))


@contextmanager
def application_page(platform: LivePlatform, *options: str) -> Iterator[tuple[LoopbackReceiver, str, str | None]]:
    """Register an application whose every page has the library; (its server, its name, its secret)."""
    script = packages_of("oauth") / "node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js"
    page = b"<!doctype html><title>application</title><script>" + script.read_bytes() + _IN_IFRAME + b"</script>"
    name = f"OidcClientTs{secrets.token_hex(4)}"
    with registered(platform, name, *options, page=page) as (receiver, secret):
        yield receiver, name, secret


def test_a_public_application(chromium: Browser, live_platform: LivePlatform) -> None:
    """Public application: code flow with PKCE, userinfo, API across origins, silent renewal in an iframe, sign-out."""
    with application_page(live_platform, "--public") as (receiver, name, _):
        application = Application(chromium, live_platform, receiver, client_id=name, scope="openid profile email read")
        user = application.signed_in()
        assert (user["sub"], user["email"], user["state"]) == ("demo", "demo@example.com", {"from": "test"})
        assert user["refresh"] is None
        assert application.calls_the_api(user["token"]) == 200

        renewed = application.does("return told(await manager.signinSilent());")
        assert renewed["sub"] == "demo"
        assert renewed["token"] != user["token"]
        assert application.calls_the_api(renewed["token"]) == 200

        application.does("void manager.signoutRedirect({ state: 'bye' });")
        application.page.wait_for_url(f"{application.bye}**")
        assert application.does("return (await manager.signoutCallback()).error ?? null;") is None
        assert application.calls_the_api(renewed["token"]) == 401
        application.does("void manager.signinRedirect();")
        application.page.wait_for_url(f"{application.base_url}/id/account/login**")


def test_an_application_with_refresh_tokens(chromium: Browser, live_platform: LivePlatform) -> None:
    """Application with a secret: refresh tokens rotate, revocation of both tokens ends access."""
    with application_page(live_platform) as (receiver, name, secret):
        application = Application(
            chromium, live_platform, receiver,
            client_id=name, client_secret=secret, scope="openid email offline_access read",
        )  # fmt: skip
        user = application.signed_in()
        renewed = application.does("return told(await manager.signinSilent());")
        assert user["refresh"] not in (None, renewed["refresh"])
        assert application.calls_the_api(renewed["token"]) == 200
        application.does("await manager.revokeTokens(['access_token', 'refresh_token']);")
        assert application.calls_the_api(renewed["token"]) == 401


def test_refusals(chromium: Browser, live_platform: LivePlatform) -> None:
    """Bad input: a scope beyond the application's and `prompt=none` without a session reach the library as errors."""
    with application_page(live_platform, "--public") as (receiver, name, _):
        beyond = Application(chromium, live_platform, receiver, client_id=name, scope="openid sec")
        beyond.does("void manager.signinRedirect();")
        beyond.page.wait_for_url(f"{beyond.callback}**")
        refused = "return manager.signinCallback().then(() => '', (error) => error.error);"
        assert beyond.does(refused) == "invalid_scope"
        nobody = Application(chromium, live_platform, receiver, client_id=name, scope="openid")
        silent = "return manager.signinSilent().then(() => '', (error) => error.error);"
        assert nobody.does(silent) == "login_required"
