"""A user with a role works in the admin of the running instance, in Chromium (spec 01, 1.7; 09, 9.5)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.support.chromium import log_in, watched_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]


def test_a_salesperson_edits_an_order_and_is_refused_where_the_rights_end(
    live_platform: LivePlatform, chromium: Browser
) -> None:
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/")
        log_in(page, "demo", "demo")
        page.wait_for_selector(".home-sections")
        assert page.locator(".health-card h3").all_inner_texts() == ["Orders by state", "Sales by month"]
        assert page.locator("a[href='/admin/identity/role/']").count() == 0

        page.keyboard.press("Control+k")
        expect(page.locator("#search-input-command")).to_be_focused()
        page.keyboard.type("sales ord")
        # What was found for the first letters has gone.
        expect(page.locator("#command-results-list a").first).to_contain_text("Sales orders")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        assert page.url.endswith("/admin/domain/salesorder/")

        page.goto("/admin/domain/salesorder/?state=New")
        page.click("#result_list tbody th a")
        page.wait_for_selector("[name=_save]")
        page.wait_for_load_state()
        assert page.locator("a[href*='/delete/']").count() == 0  # the role does not delete
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
        page.fill("[name=customer_purchase_order_no]", "PO-4711")
        with page.expect_navigation():
            page.click("[name=_save] >> nth=0")
        assert "was changed successfully" in page.inner_text(".messagelist")

        page.goto("/admin/domain/salesorder/?state=Released")
        page.click("#result_list tbody th a")
        assert "cannot be changed" in page.inner_text(".edit-refusal")
        assert page.locator("[name=_save]").count() == 0

        page.goto("/admin/domain/product/")
        page.click("#result_list tbody th a")
        page.wait_for_selector("#content form")
        assert page.locator("[name=_save]").count() == 0  # products are to be read
        for address in ("/admin/identity/session/", "/admin/identity/role/", "/admin/domain/product/add/"):
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 403
            assert "You are signed in as demo" in page.inner_text("[role=alert]")
