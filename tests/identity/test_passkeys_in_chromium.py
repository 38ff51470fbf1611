"""Passkeys in Chromium with its virtual authenticator: registered, used alone, as second factor, and by autofill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page

from tests.support.chromium import PHONE, fits, log_in, watched_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

PASSKEYS = "section[aria-labelledby=factors] .stacked"


@dataclass(frozen=True, slots=True)
class Device:
    """A page, and the authenticator of its browser."""

    page: Page
    devtools: CDPSession
    authenticator: str

    def present(self, someone: bool) -> None:
        """Whether somebody touches the authenticator when it asks."""
        asked = {"authenticatorId": self.authenticator, "enabled": someone}
        self.devtools.send("WebAuthn.setAutomaticPresenceSimulation", asked)


@pytest.fixture
def device(live_platform: LivePlatform, chromium: Browser) -> Iterator[Device]:
    """A phone's browser that has an authenticator with user verification. Passkeys need a name: not 127.0.0.1."""
    base_url = live_platform.base_url.replace("127.0.0.1", "localhost")
    with watched_page(chromium, base_url, viewport=PHONE) as page:
        devtools = page.context.new_cdp_session(page)
        devtools.send("WebAuthn.enable")
        options: dict[str, Any] = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        added = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
        yield Device(page, devtools, added["authenticatorId"])


def test_a_passkey_from_its_registration_to_its_removal(device: Device) -> None:
    page = device.page
    page.goto("/id/account/login")
    log_in(page, "customer", "customer")
    page.click("text=Register a passkey")
    page.fill("[name=name]", "Phone")
    page.click("button")
    page.wait_for_selector(".codes")
    assert fits(page)
    page.click("text=I have kept them")
    assert page.input_value(f"{PASSKEYS} [name=name]") == "Phone"
    assert fits(page)

    # The same authenticator is not registered twice; the browser knows.
    page.click("text=Register a passkey")
    page.click("button")
    page.wait_for_selector("[data-problem]:not([hidden])")
    assert "already" in page.inner_text("[data-problem]")

    # As second factor; nobody touches the authenticator while the login page asks for autofill.
    device.present(False)
    page.context.clear_cookies()
    page.goto("/id/account/login")
    log_in(page, "customer", "customer")
    device.present(True)
    page.click("text=Use a passkey")
    page.wait_for_url("**/profile/")

    # Alone: by the autofill that the page offers, which the virtual authenticator accepts at once.
    page.context.clear_cookies()
    page.goto("/id/account/login")
    page.wait_for_url("**/profile/")

    page.click("text=Remove >> nth=0")
    assert page.locator(PASSKEYS).count() == 0
