"""The rule pages in Chromium, by keyboard alone: a rule from nothing until it fires (how they look: tests.pages)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
import requests
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.chromium import administrators_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]
ADD = "/admin/domain/userbusinessrule/add/"
LIST = "/admin/domain/userbusinessrule/"
#: Presses of Tab from one field to any other of the page.
_FAR = 120


@pytest.fixture
def page(chromium: Browser, live_platform: LivePlatform) -> Iterator[Page]:
    """An administrator's page."""
    with administrators_page(chromium, live_platform.base_url) as opened:
        yield opened


def reach(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(_FAR):
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never reaches {selector}")


def enter(page: Page, name: str, text: str) -> None:
    """Type into a field; in a drop-down that chooses the option that begins so."""
    reach(page, f"[name='{name}']")
    page.keyboard.type(text)


def rename(platform: LivePlatform, number: str, to: str) -> requests.Response:
    """Another program changes the part number of a product."""
    asked = {"grant_type": "client_credentials", "client_id": "ServiceDemoClient", "client_secret": "DEMO"}
    answer = requests.post(f"{platform.base_url}/id/connect/token", {**asked, "scope": "read update"}, timeout=60)
    headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
    products = f"{platform.odata_url}General_Products_Products"
    wanted = {"$filter": f"PartNumber eq '{number}'", "$select": "Id"}
    (found,) = requests.get(products, wanted, headers=headers, timeout=60).json()["value"]
    key = found["Id"]
    return requests.patch(f"{products}({key})", json={"PartNumber": to}, headers=headers, timeout=60)


def test_a_rule_is_written_tried_mended_saved_fired_and_switched_off_by_keyboard(
    page: Page, live_platform: LivePlatform
) -> None:
    code = f"B{secrets.token_hex(4).upper()}"
    page.goto(ADD)
    enter(page, "code", code)
    enter(page, "name_en", "No such part number")
    enter(page, "repository_name", "General.Products.Products")
    expect(page.locator("[name=Events-0-event_type] option[value=STATECHANGING]")).to_have_count(0)
    enter(page, "Events-0-event_type", "is about to be saved by a caller")
    expect(page.locator("#rule-Events .rule-hint")).to_contain_text("CLIENTCOMMIT")

    reach(page, "#add-Conditions")
    page.keyboard.press("Enter")
    expect(page.locator("[name=Conditions-0-attribute_name]")).to_be_focused()
    page.keyboard.type("Part number")
    expect(page.locator("[name=Conditions-0-attribute_name]")).to_have_value("PartNumber")
    enter(page, "Conditions-0-comparison_type", "is like")
    enter(page, "Conditions-0-value", f"{code}*")
    enter(page, "Actions-0-action_type", "refuse it")
    expect(page.locator("[name=Actions-0-parameter_1_value]")).to_be_visible()
    expect(page.locator("[name=Actions-0-parameter_2_value]")).to_have_count(0)

    # Saving says what is missing, at its field, and keeps what was entered.
    reach(page, "[name=_continue]")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("#rule-Actions .errorlist")).to_contain_text("message")
    expect(page.locator("[name=Conditions-0-value]")).to_have_value(f"{code}*")
    enter(page, "Actions-0-parameter_1_value", "Not {PartNumber}, please.")

    # The rule as it stands here, beside it.
    reach(page, "#try_q")
    page.keyboard.type("AC-0001")
    page.keyboard.press("Enter")
    expect(page.locator("#try_entity option")).to_have_count(2)
    reach(page, "#try_entity")
    page.keyboard.press("ArrowDown")
    tried = page.locator("#rule-tried")
    expect(tried).to_contain_text("does not act")
    assert page.url.endswith(ADD)
    for _ in range(_FAR):  # back up to the value
        if page.evaluate("document.activeElement.name") == "Conditions-0-value":
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("AC-*")
    page.keyboard.press("Tab")
    expect(tried).to_contain_text("Not AC-0001, please.")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type(f"{code}*")
    page.keyboard.press("Tab")
    expect(tried).to_contain_text("does not act")

    reach(page, "[name=_save]")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    # Not active yet: it is switched on in the list.
    page.goto(f"{LIST}?q={code}")
    for state, status in (("true", 500), ("false", 204)):
        reach(page, "[role=switch]")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.locator("[role=switch]")).to_have_attribute("aria-checked", state)
        answer = rename(live_platform, "AC-0001", f"{code}-1")
        assert answer.status_code in (status, 200 if status == 204 else status), answer.text
        assert status == 204 or f"Not {code}-1, please." in answer.text
    assert rename(live_platform, f"{code}-1", "AC-0001").ok


def test_who_types_slowly_into_a_drop_down_is_not_interrupted(page: Page) -> None:
    """What follows from the first letters must not be put in place while more letters come."""
    page.goto(ADD)
    reach(page, "[name=repository_name]")
    page.keyboard.type("General.Products.Products", delay=90)
    expect(page.locator("[name=repository_name]")).to_have_value("General.Products.Products")
    expect(page.locator("#try_q")).to_be_visible()  # it comes when no more letters do


def test_a_reference_is_chosen_by_its_name(page: Page) -> None:
    page.goto(f"{ADD}?start=require-a-value")
    page.select_option("[name=Conditions-0-attribute_name]", "Customer")
    page.wait_for_selector("[name=Conditions-0-attribute_name] option[value=Customer][selected]", state="attached")
    page.select_option("[name=Conditions-0-comparison_type]", "Equals")
    chooser = page.locator("#rule-Conditions .select2-selection")
    expect(chooser).to_have_count(1)
    chooser.click()
    first = page.locator(".select2-results__option:not(.loading-results)").first
    expect(first).to_be_visible()
    name = first.inner_text()
    with page.expect_response(lambda answer: answer.request.method == "POST"):
        first.click()
    expect(chooser).to_contain_text(name)
    guid = page.input_value("[name=Conditions-0-value]")
    assert len(guid) == 36


def test_what_is_typed_while_the_sentence_is_asked_for_is_kept(page: Page) -> None:
    page.goto(f"{ADD}?start=require-a-value")
    held: list[Route] = []
    page.route(f"**{ADD}*", lambda route: held.append(route) if not held else route.continue_())
    page.select_option("[name=Actions-0-action_type]", "WARNING")
    page.wait_for_selector("#rule-sentence.htmx-request", state="attached")
    page.fill("[name=Actions-0-parameter_1_value]", "typed meanwhile")
    held[0].continue_()
    expect(page.locator("#rule-Actions .rule-hint")).to_contain_text("WARNING")
    expect(page.locator("[name=Actions-0-parameter_1_value]")).to_have_value("typed meanwhile")
