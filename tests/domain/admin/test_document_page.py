"""The page of an order in Chromium: its height, its grid of lines, amounts before they are saved, voiding."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support.accessibility import violations
from tests.support.chromium import administrators_page, fits
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]

LIST = "/admin/domain/salesorder/"
DESKTOP: ViewportSize = {"width": 1440, "height": 900}
SMALL: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture
def page(live_platform: LivePlatform, chromium: Browser) -> Iterator[Page]:
    """An administrator's page on a desktop."""
    with administrators_page(chromium, live_platform.base_url, viewport=DESKTOP) as opened:
        yield opened


def open_new_order(page: Page) -> None:
    """Add an order of one line of the first product for the first customer by keyboard."""
    page.goto(f"{LIST}add/")
    choose(page, "customer", "C")
    page.fill("[name=document_date]", "2025-05-17")  # the home page's year ends with the newest order
    page.locator("#Lines-group .add-row").press("Enter")
    choose(page, "Lines-0-product", "mouse")


def choose(page: Page, name: str, text: str) -> None:
    """Search in a chooser and take the first entry."""
    page.locator(f".select2-selection[aria-labelledby*='id_{name}_label']").press("Enter")
    page.locator(".select2-search__field").press_sequentially(text)
    page.wait_for_selector(".select2-results__option--highlighted[data-select2-id]")
    page.keyboard.press("Enter")


def height(page: Page) -> int:
    """The page's whole height in pixels."""
    return int(page.evaluate("document.documentElement.scrollHeight"))


def orders(page: Page) -> int:
    """How many orders there are that are new."""
    page.goto(f"{LIST}?state=New")
    return page.locator("#result_list tbody tr").count()


def test_amounts_are_shown_before_they_are_saved(page: Page) -> None:
    before = orders(page)
    open_new_order(page)
    amount = page.locator("[data-preview=Lines-0-line_amount]")
    expect(amount).to_have_text(re.compile(r"\d [A-Z]{3}$"))
    one = amount.inner_text()
    page.fill("[name=Lines-0-quantity]", "3")
    page.keyboard.press("Tab")
    expect(amount).not_to_have_text(one)
    expect(page.locator("[data-preview=total_line_amount]").first).to_have_text(amount.inner_text())
    assert orders(page) == before


def test_errors_are_listed_with_links_and_open_the_sections_that_hold_them(page: Page) -> None:
    page.goto(f"{LIST}add/")
    marked = page.evaluate("getComputedStyle(document.querySelector('.field-customer > label'), '::after').content")
    assert marked == '" *"'
    folded = page.locator("details:has([name=required_delivery_date])")
    folded.locator("summary").press("Enter")
    page.fill("[name=required_delivery_date]", "soon")
    page.locator("[name=_save]").first.press("Enter")
    told = page.locator(".errornote li")
    expect(told).to_have_text([re.compile("^Required delivery date: Enter a valid date")])
    expect(page.locator("[name=required_delivery_date]")).to_be_visible()
    page.fill("[name=required_delivery_date]", "2025-05-20")
    page.locator("[name=_save]").first.press("Enter")
    expect(told).to_have_text(["Customer: This field is required."])
    told.get_by_role("link").press("Enter")
    expect(page).to_have_url(re.compile("#id_customer$"))
    assert violations(page) == []


def test_no_is_no_mistake(page: Page) -> None:
    page.goto(f"{LIST}?state=Closed")
    page.locator("#result_list tbody th a").first.click()
    shown = page.locator(".field-credit_limit_override").get_by_role("img", name="no")
    expect(shown).to_be_visible()
    assert "red" not in (shown.get_attribute("class") or "")


def test_an_order_of_one_line_fits_the_screen(page: Page) -> None:
    open_new_order(page)
    page.locator("[name=_continue]").first.press("Enter")
    page.wait_for_selector(".document-life")
    assert height(page) <= 1.5 * DESKTOP["height"]
    page.set_viewport_size(SMALL)
    assert height(page) <= 3_000
    assert fits(page)


def test_rows_that_are_not_saved_keep_their_values_when_one_is_removed(page: Page) -> None:
    open_new_order(page)
    page.locator("#Lines-group .add-row").press("Enter")
    choose(page, "Lines-1-product", "mouse")
    page.fill("[name=Lines-1-quantity]", "7")
    page.locator("[name=Lines-0-DELETE]").check()
    page.locator("[name=_continue]").first.press("Enter")
    page.wait_for_selector(".document-life")
    assert page.locator("[name=Lines-0-quantity]").input_value() == "7"
    assert page.locator("[name=Lines-1-quantity]").count() == 0


def test_voiding_asks_first(page: Page) -> None:
    open_new_order(page)
    page.locator("[name=_continue]").first.press("Enter")
    reason = page.locator("#document-reason")
    expect(reason).to_be_hidden()
    page.locator("summary", has_text="Make void").press("Enter")
    reason.fill("ordered twice")
    page.keyboard.press("Enter")
    expect(page.locator(".stepper .void")).to_be_visible()
    expect(page.locator(".document-life")).to_contain_text("ordered twice")
