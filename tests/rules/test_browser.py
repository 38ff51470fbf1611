"""The rule pages in Chromium: a rule written, mended and tried (how they look: tests.pages)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.chromium import administrators_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]
ADD = "/admin/domain/userbusinessrule/add/"


@pytest.fixture
def page(chromium: Browser, live_platform: LivePlatform) -> Iterator[Page]:
    """An administrator's page."""
    with administrators_page(chromium, live_platform.base_url) as opened:
        yield opened


def add_row(page: Page, collection: str, index: int, **values: str) -> None:
    if not page.locator(f"[name={collection}-{index}-id]").count():
        page.click(f"#{collection}-group .add-row")
    for name, value in values.items():
        field: Any = page.locator(f"[name={collection}-{index}-{name}]")
        if field.evaluate("e => e.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


def test_a_rule_is_written_mended_and_tried(page: Page) -> None:
    code = f"B{secrets.token_hex(4)}"
    page.goto(ADD)
    page.fill("[name=code]", code)
    page.fill("[name=name_en]", "A product needs a part number")
    page.select_option("[name=repository_name]", "General.Products.Products")
    add_row(page, "Events", 0, event_type="COMMIT")
    add_row(page, "Conditions", 0, attribute_name="PartNumber", comparison_type="Not_IsNull")
    add_row(page, "Conditions", 1, attribute_name="PartNumbr", comparison_type="Not_IsNull")
    add_row(
        page, "Actions", 0, action_type="WARNING", parameter_1_type="Interpolate", parameter_1_value="{PartNumber}!"
    )
    page.click("[name=_continue] >> nth=0")
    # The message stands in the second row, at its field, and what was typed is still there.
    row = page.locator(".form-group", has=page.locator("[name=Conditions-1-id]"))
    assert "PartNumber" in row.locator(".errorlist").inner_text()
    assert page.input_value("[name=Conditions-1-attribute_name]") == "PartNumbr"
    assert page.locator(".errorlist").count() == 1
    page.fill("[name=Conditions-1-attribute_name]", "Name")
    page.click("[name=_continue] >> nth=0")
    expect(page.locator(".messagelist .success")).to_have_count(1)

    page.click(".rule-help summary")
    assert "AGGREGATECLIENTCOMMIT" in page.inner_text(".rule-help")
    assert page.locator("#rule-attributes option[value=PartNumber]").count() == 1

    page.click("text=Try >> nth=0")
    expect(page.locator("input[name=q]")).to_be_focused()
    page.keyboard.type("0001")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=0001")
    page.locator(".rule-entities button").first.click()
    page.wait_for_load_state()
    result = page.locator("#result")
    assert "acts" in result.inner_text()
    assert "0001!" in result.inner_text()
    assert result.locator(".rule-holds").count() == 2

    page.goto(f"/admin/domain/userbusinessrule/?q={code}")
    assert "sound" in page.inner_text("#result_list")
    page.click("#result_list tbody a >> nth=0")
    page.click("a[href*='/delete/']")
    page.click("#content form [type=submit]")
    expect(page.locator(".messagelist .success")).to_have_count(1)
