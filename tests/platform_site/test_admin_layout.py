"""What the admin's pages show stays inside its boxes, on a desk and on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.support.chromium import log_in, watched_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

_BOXES = """() => [...document.querySelectorAll('.rule-row .rule-part')].filter(box => box.offsetWidth).map(box => {
    const field = box.querySelector('input:not([type=hidden]), select, textarea');
    return field ? field.getBoundingClientRect().right - box.getBoundingClientRect().right : 0;
})"""
_EMPTINESS = """() => [...document.querySelectorAll('.row-cell')]
    .filter(each => each.offsetWidth)
    .map(each => each.getBoundingClientRect().height - each.firstElementChild.getBoundingClientRect().height)"""


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

        page.click("#result_list tbody th a")
        page.wait_for_selector("[name=_save]")
        assert max(page.evaluate(_BOXES)) <= 0
        page.fill("[name=Actions-0-parameter_1_value]", "")
        with page.expect_navigation():
            page.click("[name=_save] >> nth=0")
        assert page.eval_on_selector(".rule-row .errorlist", "each => each.offsetWidth") > 200

        page.set_viewport_size({"width": 390, "height": 844})
        page.goto("/admin/domain/salesorder/")
        page.click("#result_list tbody th a")
        page.wait_for_selector("#content form")
        assert max(page.evaluate(_EMPTINESS)) < 100
