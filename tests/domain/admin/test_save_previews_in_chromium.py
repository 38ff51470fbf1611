"""Previews in Chromium: an order, a rule on its newest objects, an import, a configuration (spec 12, 12.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, FilePayload, Page, expect

from tests.domain.admin.test_document_page import open_new_order, orders
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, WIDE, administrators_page, fits
from tests.support.platform import LivePlatform

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.once]

CONFIGURATION = """
version: 1
rules:
  PREVIEWED:
    Name: {EN: Previewed}
    RepositoryName: General.Products.Products
    IsActive: true
    Events: [{EventType: COMMIT}]
    Actions: [{ActionNo: 10, ActionType: WARNING, Parameter1Type: Constant, Parameter1Value: Hello}]
"""


@pytest.fixture
def page(live_platform: LivePlatform, chromium: Browser) -> Iterator[Page]:
    """An administrator's page on a desktop."""
    with administrators_page(chromium, live_platform.base_url, viewport=WIDE) as opened:
        yield opened


def test_an_order_is_previewed_in_a_dialog_and_not_saved(page: Page) -> None:
    before = orders(page)
    open_new_order(page)
    button = page.locator("button[name=_dry_run]").first
    button.press("Enter")
    dialog = page.locator("dialog")
    expect(dialog.get_by_role("heading", name="What saving would do")).to_be_visible()
    expect(dialog).to_contain_text(re.compile(r"Created\s*Crm_Sales_SalesOrders\("))
    expect(dialog).to_contain_text("Crm_Sales_SalesOrderLines(")
    expect(dialog).to_contain_text("DocumentNo")
    assert violations(page) == []
    close = dialog.get_by_role("button", name="Close")
    dialog.evaluate("each => each.scrollTo(0, each.scrollHeight)")
    expect(close).to_be_in_viewport(ratio=1)
    close.press("Enter")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
    assert orders(page) == before


def test_an_invalid_form_shows_its_errors_instead(page: Page) -> None:
    page.goto("/admin/domain/salesorder/add/")
    page.locator("details:has([name=required_delivery_date]) summary").press("Enter")
    page.fill("[name=required_delivery_date]", "soon")
    with page.expect_navigation():
        page.locator("button[name=_dry_run]").first.press("Enter")
    expect(page.locator(".errornote")).to_be_visible()
    expect(page.locator("dialog")).to_have_count(0)


def test_a_rule_is_tried_on_its_newest_objects(page: Page) -> None:
    page.goto("/admin/domain/userbusinessrule/?q=Crm.Sales.SalesOrders")
    page.locator("#result_list tbody th a").first.press("Enter")
    page.locator("a[href$='/try/']").first.press("Enter")
    page.locator("button[name=newest]").press("Enter")
    expect(page.locator("#history")).to_contain_text(re.compile(r"Tried on \d+, acts on \d+"))
    assert violations(page) == []
    page.set_viewport_size(PHONE)
    assert fits(page)


def test_an_import_is_previewed_and_nothing_is_imported(page: Page) -> None:
    page.goto("/api/domain/import")
    objects = [{"@odata.type": "Erp.Finance_Payments_PaymentType", "Code": "PREV1", "Name": {"EN": "Previewed"}}]
    file: FilePayload = {"name": "o.json", "mimeType": "application/json", "buffer": json.dumps(objects).encode()}
    for _ in range(2):  # were it imported by the first preview, the second would find it
        page.set_input_files("#file", [])
        page.set_input_files("#file", file)
        page.locator("#try").press("Enter")
        expect(page.locator("#progress-text")).to_have_text("This was a preview: nothing has been imported.")
        expect(page.locator("#summary")).to_have_text("1 would be imported, 0 failed, of 1")
        expect(page.locator("#rows")).to_contain_text("added")
        expect(page.locator("#rows a")).to_have_count(0)  # there is no such object


def test_a_configuration_is_previewed(page: Page) -> None:
    page.goto("/admin/configuration/")
    file: FilePayload = {"name": "c.yaml", "mimeType": "text/yaml", "buffer": CONFIGURATION.encode()}
    for _ in range(2):
        page.set_input_files("[name=file]", file)
        page.get_by_role("button", name="Preview").press("Enter")
        expect(page.locator("pre").first).to_contain_text("+ rule PREVIEWED")
        expect(page.locator("#save-preview")).to_contain_text("Systems_Bpm_UserBusinessRules(")
    assert violations(page) == []
    page.set_viewport_size(PHONE)
    assert fits(page)
