"""From an error of the running instance to what the admin knows of it, in Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
from playwright.sync_api import Browser, Page, expect

from tests.support.accessibility import violations
from tests.support.chromium import PHONE, WIDE, administrators_page, fits
from tests.support.platform import LivePlatform
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.process]

LIST = "/admin/platform_site/recordedrequest/"


@pytest.fixture
def page(live_platform: LivePlatform, chromium: Browser) -> Iterator[Page]:
    with administrators_page(chromium, live_platform.base_url, reduced_motion="reduce") as opened:
        yield opened


def failed(platform: LivePlatform) -> requests.Response:
    """An error that the API answers to a stranger."""
    answer = requests.get(f"{platform.odata_url}Crm_Sales_SalesOrders?$top=1", timeout=60)
    assert answer.status_code == 401
    return answer


def shows(page: Page, request_id: str) -> None:
    """The page of the request is open."""
    page.wait_for_url(f"**{LIST}*/change/")
    expect(page.locator("#content")).to_contain_text(request_id)
    expect(page.locator("#content")).to_contain_text("TokenMissing")


def test_the_id_of_an_error_is_found_by_the_search_the_list_and_the_errors_own_link(
    live_platform: LivePlatform, page: Page
) -> None:
    answer = failed(live_platform)
    request_id = answer.headers["X-Request-Id"]
    assert request_id in answer.json()["error"]["info"]
    # It is written after the answer, and the search asks once.
    assert eventually(lambda: "TokenMissing" in page.request.get(f"{LIST}?q={request_id}").text())

    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type(request_id)
    expect(page.locator("#command-results-list a")).to_have_count(1)
    page.keyboard.press("Enter")
    shows(page, request_id)

    page.goto(LIST)
    page.fill("#searchbar", request_id)
    page.keyboard.press("Enter")
    shows(page, request_id)

    page.goto(answer.links["help"]["url"])
    shows(page, request_id)


def test_the_query_tool_and_the_page_of_an_error_link_to_the_request(live_platform: LivePlatform, page: Page) -> None:
    page.goto("/api/query")
    page.wait_for_selector("html[data-model]")
    page.locator(".path .cm-content").fill("Crm_Sales_SalesOrders?$filter=Nothing eq 1")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#answer[data-status='400']:not([aria-busy])")
    link = page.locator("#answer .error a code")
    request_id = link.inner_text()
    link.click()
    page.wait_for_url(f"**{LIST}*/change/")
    expect(page.locator("#content")).to_contain_text(request_id)
    expect(page.locator("#content")).to_contain_text("UnknownProperty")

    page.goto("/nothing-here")
    request_id = page.inner_text("code")
    page.click("a:has(code)")
    page.wait_for_url(f"**{LIST}*/change/")
    expect(page.locator("#content")).to_contain_text(request_id)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_list_and_page_are_accessible_and_fit_a_phone(live_platform: LivePlatform, page: Page, scheme: str) -> None:
    request_id = failed(live_platform).headers["X-Request-Id"]
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for address in (LIST, f"{LIST}?q={request_id}"):
        for size in (WIDE, PHONE):
            page.set_viewport_size(size)
            page.goto(address)
            assert violations(page) == []
            assert fits(page)
