"""The API explorer in Chromium: Swagger UI under the site's policy, signed in as the person (spec 02, 2.1)."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.accessibility import violations
from tests.support.chromium import log_in, watched_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

SET = "Finance_Payments_PaymentTypes"


def _execute(page: Page, set_name: str) -> None:
    """Open the operation that reads a set, by keyboard, and execute it."""
    for control in (
        f"[data-tag={set_name}] .expand-operation",
        f".opblock-get:has([data-path='/{set_name}']) .opblock-summary-control",
        ".opblock.is-open .execute",
    ):
        page.locator(control).focus()
        page.keyboard.press("Enter")


def test_a_request_is_tried_out_by_keyboard_as_the_signed_in_user(
    live_platform: LivePlatform, chromium: Browser
) -> None:
    """The page's policy is the site's: a violation would be on the console, which the watched page refuses."""
    with watched_page(chromium, live_platform.base_url) as page:
        documents: list[str] = []
        page.on("response", lambda response: documents.append(response.url) if "openapi" in response.url else None)
        page.goto("/id/account/login?next=/api/explorer%23Finance.Payments")
        log_in(page)
        page.wait_for_selector("html[data-model='Finance.Payments']")
        # One namespace, not the whole document of 1.3 MB.
        assert [url.partition("?")[2] for url in documents] == ["namespace=Finance.Payments"]
        _execute(page, SET)
        answer = page.locator(".live-responses-table")
        expect(answer.locator(".response-col_status").filter(has_text="200")).to_be_visible()
        expect(answer).to_contain_text("EnterpriseCompany")
        expect(page.locator(".request-url")).to_contain_text(f"/api/domain/odata/{SET}")
        expect(page.locator(".curl")).to_contain_text(SET)
        expect(page.locator(".curl")).not_to_contain_text("Bearer")
        assert violations(page) == []
        page.get_by_role("link", name="Crm.Sales", exact=True).click()
        page.wait_for_selector("html[data-model='Crm.Sales']")
        expect(page.locator("#explorer")).to_contain_text("Crm_Sales_SalesOrders")
        expect(page.locator("#explorer")).not_to_contain_text(SET)


def test_who_is_not_signed_in_reads_and_is_told_to_sign_in(live_platform: LivePlatform, chromium: Browser) -> None:
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto("/api/explorer#Finance.Payments")
        page.wait_for_selector("html[data-model='Finance.Payments']")
        _execute(page, SET)
        expect(page.locator("#announce")).to_have_text("Sign in first; what is typed here stays.")
        expect(page.locator(".live-responses-table")).not_to_contain_text("EnterpriseCompany")


def test_colours_change_at_once_with_those_of_the_system(live_platform: LivePlatform, chromium: Browser) -> None:
    """Swagger UI fades them: for a fifth of a second a title was dark on dark."""
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto("/api/explorer#Finance.Payments")
        page.wait_for_selector("html[data-model='Finance.Payments']")
        light, dark, later = page.evaluate(
            """async () => {
              const title = document.querySelector('.opblock-tag');
              const colour = () => getComputedStyle(title).color;
              const before = colour();
              document.documentElement.classList.add('dark-mode');
              const at_once = colour();
              await Promise.all(title.getAnimations().map((each) => each.finished));
              return [before, at_once, colour()];
            }"""
        )
        assert light != dark
        assert dark == later


def test_an_unknown_namespace_is_named(live_platform: LivePlatform, chromium: Browser) -> None:
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto("/api/explorer#Nothing")
        expect(page.locator("#explorer [role=alert]")).to_contain_text("There is no namespace 'Nothing'.")
