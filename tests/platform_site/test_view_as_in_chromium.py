"""An administrator sees the admin of the running instance as a salesperson, in Chromium, by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.accessibility import violations
from tests.support.chromium import PHONE, administrators_page, fits
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]


def press(page: Page, selector: str) -> None:
    """Follow a link or press a button by keyboard."""
    page.focus(selector)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_a_view_as_a_salesperson_begins_shows_their_pages_and_ends(
    live_platform: LivePlatform, chromium: Browser
) -> None:
    with administrators_page(chromium, live_platform.base_url, reduced_motion="reduce") as page:
        page.goto("/admin/identity/user/?q=demo")
        press(page, "#result_list th a:has-text('(demo)')")
        press(page, "a[href$='/view-as/']")
        press(page, "#content [type=submit]")

        banner = page.locator(".view-as")
        expect(banner).to_contain_text("You see the admin as demo")
        assert page.locator("#health-sites").count() == 0
        assert page.locator("a[href='/admin/identity/role/']").count() == 0

        page.goto("/admin/domain/salesorder/?state=New")
        press(page, "#result_list tbody th a")
        page.wait_for_load_state()
        expect(page.locator("[name=_save]").first).to_be_disabled()
        expect(page.locator(".document-steps button").first).to_be_disabled()
        assert violations(page) == []
        page.set_viewport_size(PHONE)
        page.emulate_media(color_scheme="dark")
        assert violations(page, only=("color-contrast",)) == []
        assert fits(page)
        answer = page.goto("/admin/identity/role/")
        assert answer is not None
        assert answer.status == 403
        expect(banner).to_be_visible()
        assert violations(page) == []

        press(page, ".view-as button")
        assert "/admin/identity/user/" in page.url
        expect(banner).to_have_count(0)
        expect(page.locator("[name=_save]").first).to_be_enabled()
