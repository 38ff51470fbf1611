"""What the admin's pages show stays inside its boxes, on a desk and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.support.chromium import administrators_page, fits, log_in, watched_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

_BOXES = """() => [...document.querySelectorAll('.rule-row .rule-part')].filter(box => box.offsetWidth).map(box => {
    const field = box.querySelector('input:not([type=hidden]), select, textarea');
    return field ? field.getBoundingClientRect().right - box.getBoundingClientRect().right : 0;
})"""
_EMPTINESS = """() => [...document.querySelectorAll('.row-cell')]
    .filter(each => each.offsetWidth)
    .map(each => each.getBoundingClientRect().height - each.firstElementChild.getBoundingClientRect().height)"""
_REPEATED_IDS = """() => [...document.querySelectorAll('[id]')].map(each => each.id)
    .filter((id, index, all) => all.indexOf(id) !== index)"""


def test_fields_messages_and_columns_stay_in_sight(live_platform: LivePlatform, chromium: Browser) -> None:
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/")
        log_in(page, "admin", "admin")
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto("/admin/domain/userbusinessrule/")
        for column, text in {"last_fired": "Nov. 22, 2026, 1:41 p.m.", "average": "12,345.6 ms"}.items():
            page.eval_on_selector_all(f".field-{column}", f"all => all.forEach(each => each.textContent = '{text}')")
        assert (
            page.eval_on_selector(
                "#changelist .simplebar-content-wrapper", "each => each.scrollWidth - each.clientWidth"
            )
            == 0
        )
        assert not page.locator(".sort-by").is_visible(), "the heads of the columns sort"

        page.click("#result_list tbody th a")
        page.wait_for_selector("[name=_save]")
        assert max(page.evaluate(_BOXES)) <= 0
        page.fill("[name=Actions-0-parameter_1_value]", "")
        with page.expect_navigation():
            page.click("[name=_save] >> nth=0")
        assert page.eval_on_selector(".rule-row .errorlist", "each => each.offsetWidth") > 200

        page.set_viewport_size({"width": 390, "height": 844})
        for path in ("/sys/resource-monitor", "/admin/domain/documentdistributedamount/add/"):
            page.goto(path)
            assert fits(page), path
        page.goto("/admin/domain/salesorder/")
        assert page.locator(".sort-by").is_visible()
        page.click("#result_list tbody th a")
        page.wait_for_selector("#content form")
        assert max(page.evaluate(_EMPTINESS)) < 100


def test_a_page_has_landmarks_names_and_an_id_for_each_element(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/domain/product/")
        assert page.get_by_role("main").count() == 1
        assert page.get_by_role("textbox", name="Search").count() == 1
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content", "the first link leads over the menu"
        page.locator("#result_list tbody a").first.click()
        page.wait_for_selector("#content form")
        assert page.evaluate(_REPEATED_IDS) == []
        page.goto("/admin/domain/customentity/add/")
        assert page.evaluate(_REPEATED_IDS) == []
        answer = page.goto("/id/account/view-as/stop")
        assert answer is not None
        assert answer.status == 405
        assert page.locator("h1").inner_text() == "This address is not a page"
