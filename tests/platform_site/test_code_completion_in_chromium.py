"""Completion of names in the editors of scripts, rules and webhooks, in Chromium under the pages' policy."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.chromium import administrators_page
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process]


def editor(page: Page, field: str) -> Locator:
    return page.locator(f".code-editor[data-for={field}]")


def complete(page: Page, field: str, text: str, begun: str, wanted: str) -> None:
    """Type into the empty editor: after `text` and `begun`, the list offers `wanted`, which a click inserts."""
    content = editor(page, field).locator(".cm-content")
    content.click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)
    page.keyboard.type(begun)
    offered = editor(page, field).locator(".cm-tooltip-autocomplete li[aria-selected]")
    expect(offered.locator(".cm-completionLabel")).to_have_text(wanted)
    # By click: CodeMirror ignores keys in the first moments of a list, which may have been meant for the text.
    offered.click()
    expect(editor(page, field).locator(".cm-line", has_text=wanted).first).to_be_visible()


def test_a_script_completes_the_model_variables_and_inputs(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/domain/script/add/")
        complete(page, "script_text", "Domain.Crm.", "Sal", "Sales")
        complete(page, "script_text", "Domain.Crm.Sales.", "SalesOrdersR", "SalesOrdersRepository")
        complete(page, "script_text", "Domain.Crm.Sales.SalesOrdersRepository.", "getByI", "getById")
        query = "const [order] = Domain.Crm.Sales.SalesOrdersRepository.query({}, { fetch: 1 });\n"
        complete(page, "script_text", f"{query}order.", "DocumentN", "DocumentNo")
        complete(page, "script_text", f"{query}for (const line of order.Lines) line.Product.", "PartN", "PartNumber")
        complete(page, "script_text", f"{query}order.", "ChangeS", "ChangeState")
        complete(page, "script_text", "Trans", "a", "Transaction")
        page.fill("[name=parameter_schema]", '{"grossPrice": {"type": "number"}}')
        complete(page, "script_text", "parameters.", "gro", "grossPrice")


def test_a_rule_completes_its_subject_and_event(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/domain/userbusinessrule/add/")
        page.select_option("[name=repository_name]", "Crm.Sales.SalesOrders")
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
        complete(page, "script_text", "subject.Customer.", "Par", "Party")
        complete(page, "script_text", "event.", "ToSt", "ToState")
        complete(page, "script_text", "Domain.General.Products.", "ProductsR", "ProductsRepository")


def test_a_webhook_completes_placeholders(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto("/admin/domain/webhook/add/")
        page.fill("[name=repository_name]", "Crm.Sales.SalesOrders")
        page.press("[name=repository_name]", "Tab")
        complete(page, "body", '{{"number": "{', "DocumentN", "DocumentNo")
        complete(page, "body", "{Customer.Party.", "PartyN", "PartyName")
        complete(page, "body", "{", "$newg", "$newguid")
        complete(page, "body", "{", "$ToSt", "$ToState")
        # A doubled brace is a brace.
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        page.keyboard.insert_text("{{")
        page.keyboard.type("Document")
        expect(page.locator("[name=body]")).to_have_value("{{Document")
        expect(editor(page, "body").locator(".cm-tooltip-autocomplete")).to_have_count(0)
