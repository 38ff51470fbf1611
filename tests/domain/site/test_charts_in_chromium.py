"""The Chart tab of the query tool, charts that are saved, and their tiles on the home page, under the pages' policy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.accessibility import violations
from tests.support.chromium import PHONE, fits, log_in, watched_page
from tests.support.platform import LivePlatform
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.process]

ORDERS = "Crm_Sales_SalesOrders"
BY_STATE = f"{ORDERS}?$apply=groupby((State),aggregate($count as Orders))&$orderby=State"
#: Readable for administrators only.
RULES = "Systems_Bpm_UserBusinessRules?$apply=groupby((IsActive),aggregate($count as Rules))"


@pytest.fixture
def page(live_platform: LivePlatform, chromium: Browser) -> Iterator[Page]:
    """The query tool of an administrator, whose saved queries are deleted at the end."""
    with watched_page(chromium, live_platform.base_url) as opened:
        opened.goto("/id/account/login?next=/api/query")
        log_in(opened)
        opened.wait_for_selector("html[data-model]")
        yield opened
        opened.goto("/api/query")
        opened.evaluate(
            """async () => {
              for (const query of await (await site.ask('GET', site.data.queries)).json()) {
                await site.ask('DELETE', `${site.data.queries}/${query.id}`);
              }
            }"""
        )


def ask(page: Page, text: str) -> None:
    """Run a query and wait for its rows."""
    page.locator(".path .cm-content").fill(text)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#answer[data-status='200']:not([aria-busy])")


def chart(page: Page, text: str) -> None:
    """Run a query and open the Chart tab."""
    ask(page, text)
    page.click("#tab-chart")
    expect(page.locator("#answer canvas")).to_be_visible()


def drawn(page: Page, place: str) -> Any:
    """What the chart there shows."""
    return json.loads(page.locator(f"{place} figure script").text_content() or "")


def save(page: Page, name: str) -> None:
    page.fill("#save-name", name)
    page.press("#save-name", "Enter")
    expect(page.locator("#saved").get_by_role("link", name=name)).to_be_visible()


def test_a_chart_is_chosen_by_keyboard_and_begins_with_what_fits_the_rows(page: Page) -> None:
    chart(page, BY_STATE)
    answer = page.evaluate("path => site.get(path)", site_path(BY_STATE))
    rows = {row["State"]: row["Orders"] for row in answer["value"]}
    shown = drawn(page, "#answer")
    assert shown["kind"] == "bar"
    assert dict(zip(shown["categories"], shown["series"][0]["figures"], strict=True)) == rows
    page.locator("#answer figure summary").press("Enter")
    expect(page.locator("#answer figure tbody tr")).to_have_count(len(rows))
    assert violations(page) == []
    page.get_by_label("Type of chart").focus()
    page.keyboard.press("End")
    expect(page.get_by_label("Type of chart")).to_have_value("pie")
    assert eventually(lambda: drawn(page, "#answer")["kind"] == "pie")
    expect(page.locator("#answer canvas")).to_be_visible()
    chart(page, f"{ORDERS}?$apply=groupby((DocumentDate,State),aggregate($count as Orders))&$orderby=DocumentDate")
    shown = drawn(page, "#answer")
    assert shown["kind"] == "line"
    assert {each["name"] for each in shown["series"]} <= set(rows)
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []
    page.set_viewport_size(PHONE)
    expect(page.locator("#answer canvas")).to_be_visible()
    assert fits(page)


def test_rows_without_figures_or_without_labels_have_no_chart(page: Page) -> None:
    for query in (f"{ORDERS}?$apply=aggregate($count as Orders)", f"{ORDERS}?$select=DocumentNo&$top=2"):
        ask(page, query)
        expect(page.locator("#tab-table")).to_be_visible()
        expect(page.locator("#tab-chart")).to_have_count(0)


def test_a_saved_chart_is_drawn_again_and_on_the_home_page(page: Page) -> None:
    chart(page, BY_STATE)
    page.select_option("[name=kind]", "line")
    assert eventually(lambda: drawn(page, "#answer")["kind"] == "line")
    save(page, "Orders by state, drawn")
    expect(page.locator("#saved li")).to_contain_text("Line")
    tab = drawn(page, "#answer")
    pin = page.get_by_role("button", name="Home page: Orders by state, drawn")
    pin.press("Enter")
    expect(pin).to_have_attribute("aria-pressed", "true")
    expect(pin).to_be_focused()
    assert violations(page) == []
    ask(page, f"{ORDERS}?$select=DocumentNo,State,TotalLineAmount&$top=3")
    page.click("#tab-table")
    save(page, "Three orders in rows")
    page.get_by_role("button", name="Home page: Three orders in rows").press("Enter")
    expect(page.get_by_role("button", name="Home page: Three orders in rows")).to_have_attribute("aria-pressed", "true")

    page.goto("/admin/")
    expect(page.locator("#tiles-title + div .health-table tbody tr")).to_have_count(3)
    tile = page.locator("#tiles-title + div article", has_text="Orders by state, drawn")
    expect(tile.locator("canvas")).to_be_visible()
    assert json.loads(tile.locator("figure script").text_content() or "") == tab
    assert violations(page) == []
    tile.locator("summary").press("Enter")
    expect(tile.locator("tbody tr")).to_have_count(len(tab["categories"]))
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html.dark")).to_be_attached()
    assert violations(page) == []
    page.set_viewport_size(PHONE)
    assert fits(page)

    tile.get_by_role("link", name="Orders by state, drawn").click()
    expect(page.locator("#path")).to_have_value(BY_STATE)
    expect(page.locator("#saved li").first).to_contain_text("Line")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#tab-chart")).to_have_attribute("aria-selected", "true")
    assert drawn(page, "#answer") == tab


def test_a_tile_shows_each_reader_what_the_reader_may_see(
    page: Page, live_platform: LivePlatform, chromium: Browser
) -> None:
    chart(page, RULES)
    page.check("#save-shared")
    save(page, "Rules in use")
    with watched_page(chromium, live_platform.base_url) as other:
        other.goto("/id/account/login?next=/api/query")
        log_in(other, "demo", "demo")
        other.wait_for_selector("html[data-model]")
        pin = other.get_by_role("button", name="Home page: Rules in use")
        pin.click()
        expect(pin).to_have_attribute("aria-pressed", "true")
        other.goto("/admin/")
        tile = other.locator("#tiles-title + div article")
        expect(tile).to_contain_text("You may not read what this query asks for.")
        expect(tile.locator("canvas")).to_have_count(0)
        expect(other.locator("#health-orders canvas")).to_be_visible()
        assert violations(other) == []
        # A session that has ended meanwhile.
        other.route("**/admin/tiles/**", lambda route: route.fulfill(status=500))
        other.reload()
        expect(tile).to_contain_text("This part of the page did not come")
        expect(tile.get_by_role("link", name="Rules in use")).to_be_visible()


def site_path(typed: str) -> str:
    return typed.replace(" ", "%20")
