"""Amounts with their currency, quantities with their unit, and discounts in per cent, on pages and lists."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import Browser

from domain.entities.crm_sales import SalesOrder
from tests.rules.cast import World, dataset, new_line, new_order
from tests.support.chromium import administrators_page
from tests.support.platform import LivePlatform

LIST = "/admin/domain/salesorder/"


def texts(answer: Any) -> str:
    """The page without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split())


def new_stored_order(world: World) -> SalesOrder:
    """An order with a line of 3 at 12.5 % less."""
    changes = dataset(world.context)
    header = new_order(changes, world)
    new_line(
        changes, world, header, LineCustomDiscountPercent=Decimal("0.125"),
        Quantity=Decimal(3), UnitPrice=Decimal(1000),
    )  # fmt: skip
    changes.commit()
    return SalesOrder.objects.get(pk=header.id)


@pytest.fixture
def order(world: World) -> SalesOrder:
    return new_stored_order(world)


def test_lists_show_amounts_with_their_currency(boss: Client, order: SalesOrder) -> None:
    total = f"{order.total_line_amount:,.2f} {order.document_currency.currency_sign}"
    assert total in texts(boss.get(LIST, {"q": order.document_no}))


def test_a_list_loads_the_currencies_with_its_rows(boss: Client, world: World, order: SalesOrder) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert boss.get(LIST).status_code == 200
        return len(captured)

    queries()
    one = queries()
    for _ in range(5):
        new_stored_order(world)
    # Caches are read again after a time, which is a statement or two, but not one for each of the five rows.
    assert queries() < one + 5


def test_inputs_name_the_measure(boss: Client, order: SalesOrder) -> None:
    page = texts(boss.get(f"{LIST}{order.pk}/change/"))
    for label in ("Unit price (EUR)", "Quantity (pcs)", "Discount (%)"):
        assert label in page


def test_a_released_order_is_read_with_measures(boss: Client, order: SalesOrder) -> None:
    boss.post(f"{LIST}{order.pk}/change-state/", {"state": "Released"})
    page = texts(boss.get(f"{LIST}{order.pk}/change/"))
    assert "cannot be changed" in page
    for value in ("12.5 %", "3 pcs", f"{order.total_line_amount:,.2f} EUR"):
        assert value in page


@pytest.mark.browser
@pytest.mark.process
def test_a_discount_is_entered_in_per_cent(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url) as page:
        page.goto(f"{LIST}?q=0000000002")
        page.locator("#result_list tbody a").first.click()
        discount = page.locator("[name=Lines-0-line_custom_discount_percent]")
        total = page.locator(".field-total_line_amount .readonly").inner_text()
        before = discount.input_value()
        for typed in ("12.5", before):
            discount.fill(typed)
            page.click("[name=_continue] >> nth=0")
            page.wait_for_load_state()
            assert discount.input_value() == typed
        assert page.locator(".field-total_line_amount .readonly").inner_text() == total
        assert total.endswith(" EUR")


@pytest.mark.browser
@pytest.mark.process
def test_a_number_has_a_point_or_a_comma(live_platform: LivePlatform, chromium: Browser) -> None:
    with administrators_page(chromium, live_platform.base_url, locale="de-DE") as page:
        page.goto(f"{LIST}?q=0000000002")
        page.locator("#result_list tbody a").first.click()
        price = page.locator("[name=Lines-0-unit_price]")
        before = price.input_value()
        for typed, kept in (("79,25", "79,25"), ("1.079,25", "1079,25"), ("79.25", "79,25"), (before, before)):
            # Keys, as a person has: an input of the type number drops a comma.
            price.fill("")
            price.press_sequentially(typed)
            page.click("[name=_continue] >> nth=0")
            page.wait_for_load_state()
            assert price.input_value() == kept
        price.fill("1.250")
        page.click("[name=_continue] >> nth=0")
        page.wait_for_load_state()
        assert "1250" in page.locator(".errorlist").first.inner_text(), "refused: it could be one and a quarter"
        assert price.input_value() == "1.250"
