"""The tree of a calculated attribute in Chromium, by keyboard alone: from nothing until a list shows its values."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.rules.test_browser import enter, reach
from tests.support.chromium import administrators_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]
ADD = "/admin/domain/calculatedattribute/add/"


@pytest.fixture
def page(chromium: Browser, live_platform: LivePlatform) -> Iterator[Page]:
    """An administrator's page."""
    with administrators_page(chromium, live_platform.base_url) as opened:
        yield opened


def test_a_new_one_begins_with_its_repository_and_is_active(page: Page) -> None:
    page.goto(ADD)
    names = page.eval_on_selector_all("fieldset:first-of-type [name]", "fields => fields.map(field => field.name)")
    assert [*dict.fromkeys(name.rpartition("_")[0] if name.startswith("caption") else name for name in names)] == [
        "repository_name", "name", "caption", "is_active",
    ]  # fmt: skip
    expect(page.locator("[name=is_active]")).to_be_checked()
    assert page.locator("fieldset summary").all_inner_texts()[-2:] == ["From another system", "Kept by the platform"]


def press(page: Page, selector: str) -> None:
    reach(page, selector)
    page.keyboard.press("Enter")


def test_a_tree_is_written_mended_tried_and_saved_by_keyboard(page: Page) -> None:
    name = f"Long{secrets.token_hex(3)}"
    page.goto(ADD)
    enter(page, "caption_en", "Is long")
    enter(page, "name", name)
    enter(page, "repository_name", "General.Products.Products")
    press(page, "#add-row")
    expect(page.locator("[name=Expressions-0-operator]")).to_be_focused()
    page.keyboard.type("GT")
    expect(page.locator("[name=Expressions-0-parameter_2_type]")).to_be_visible()
    expect(page.locator("[name=Expressions-0-parameter_3_type]")).to_have_count(0)
    enter(page, "Expressions-0-parameter_1_type", "result")
    enter(page, "Expressions-0-parameter_1_value", "20")
    enter(page, "Expressions-0-parameter_2_type", "constant")
    expect(page.locator("#make-20-Expressions-0")).to_be_visible()
    enter(page, "Expressions-0-parameter_2_value", "4")

    # The row that it names does not exist yet: a button adds it below.
    press(page, "#make-20-Expressions-0")
    expect(page.locator("#row-10 #row-20 [name=Expressions-1-operator]")).to_be_focused()
    page.keyboard.type("LEN")
    expect(page.locator("[name=Expressions-1-parameter_1_type]")).to_be_visible()
    enter(page, "Expressions-1-parameter_1_type", "attribute")
    enter(page, "Expressions-1-parameter_1_value", "PartNumbr")
    page.keyboard.press("Tab")
    expect(page.locator("#row-20 .errorlist")).to_contain_text("Did you mean PartNumber?")
    for _ in range(10):  # back to the value
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.name") == "Expressions-1-parameter_1_value":
            break
    page.keyboard.press("Control+a")
    page.keyboard.type("PartNumber")
    page.keyboard.press("Tab")
    expect(page.locator("#row-20 .calculation-type")).to_have_text("Edm.Int32")
    expect(page.locator("#row-10 > .calculation-row .calculation-type")).to_have_text("Edm.Boolean")

    # The list of entities follows what is typed.
    reach(page, "#try_q")
    page.keyboard.type("AC-0001")
    expect(page.locator("#try_entity option")).to_have_count(2)
    expect(page.locator("#try_q")).to_be_focused()
    reach(page, "#try_entity")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#calculation-value output")).to_have_text("Yes")
    expect(page.locator("#row-20 output")).to_have_text("= 7")
    assert page.url.endswith(ADD), "nothing is saved"

    # Enter in a field saves, and presses no button of a row.
    page.locator("[name=is_active]").check()
    page.locator("[name=name]").focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("#result_list")).to_contain_text(name)
    page.goto(f"/admin/domain/product/?q=AC-0001&columns=part_number,CalculatedAttribute_{name}")
    expect(
        page.locator(f"#result_list .field-CalculatedAttribute_{name} [title], #result_list img").first
    ).to_be_visible()
