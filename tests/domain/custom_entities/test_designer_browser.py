"""An entity is designed, changed with a loss of data and removed in Chromium (how the pages look: tests.pages)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.chromium import administrators_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]
LIST = "/admin/domain/customentity/"


@pytest.fixture
def page(chromium: Browser, live_platform: LivePlatform) -> Iterator[Page]:
    """An administrator's page."""
    with administrators_page(chromium, live_platform.base_url) as opened:
        yield opened


def new_attribute(page: Page, index: int, name: str, type_: str) -> Locator:
    """A row for an attribute of the type."""
    page.locator("#Attributes-group .add-row").click()
    row = page.locator(f"#Attributes-group .form-group:has([name=Attributes-{index}-name])")
    row.locator("[name$=-name]").fill(name)
    row.locator("[name$=-attribute_type]").select_option(type_)
    return row


def shown(row: Locator) -> set[str]:
    """Names of the fields that a row shows, of those that not every type has."""
    names = ("max_length", "decimal_places", "target_repository", "measure_reference", "default_value", "is_indexed")
    return {name for name in names if row.locator(f".field-{name}").is_visible()}


def save(page: Page, button: str = "_continue") -> None:
    with page.expect_navigation():
        page.locator(f"[name={button}]").last.click()


def test_an_entity_is_designed_changed_and_removed(page: Page) -> None:
    page.goto(f"{LIST}add/")
    page.fill("[name=name]", "Custom.Garden.Trees")
    page.fill("[name=code_attribute]", "Code")
    row = new_attribute(page, 0, "Code", "Text")
    assert shown(row) == {"max_length", "default_value", "is_indexed"}
    row = new_attribute(page, 1, "Height", "Decimal")
    assert shown(row) == {"decimal_places", "default_value", "is_indexed"}
    row = new_attribute(page, 2, "Kind", "Reference")
    assert shown(row) == {"target_repository"}
    row.locator("[name$=-target_repository]").fill("General.Products.Products")
    save(page)
    picture = page.locator(".diagram")
    expect(picture.locator("a.outgoing")).to_contain_text("Products")

    page.goto("/admin/custom/tree/add/")
    page.fill("[name=code]", "T1")
    page.fill("[name=height]", "12.5")
    save(page, "_save")

    # A loss of data has a page of its own, and a way back that keeps what was entered.
    page.goto(LIST)
    page.get_by_role("link", name="Custom.Garden.Trees").click()
    height = page.locator("#Attributes-group .form-group.original").filter(has=page.locator("[value=Height]"))
    height.locator("[name$=-DELETE]").press("Space")
    save(page)
    expect(page.locator(".plan-steps")).to_contain_text("The attribute Height is dropped with 1 value.")
    page.get_by_role("button", name="Back to the form").click()
    expect(height.locator("[name$=-DELETE]")).to_be_checked()
    save(page)
    page.get_by_role("button", name="Save and lose the data").click()
    expect(page.locator("#Attributes-group .form-group.original")).to_have_count(2)

    page.goto(page.url.replace("/change/", "/delete/"))
    expect(page.locator(".plan-steps")).to_contain_text("is dropped with 1 row")
    page.get_by_role("button", name="Delete and lose the data").click()
    page.wait_for_url(f"**{LIST}")
    page.goto(LIST)
    expect(page.get_by_role("link", name="Custom.Garden.Trees")).to_have_count(0)
