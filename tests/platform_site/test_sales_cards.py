"""Orders by state and sales by month on the home page, as far as the user may read orders (spec 01, 1.7; 09, 9.5)."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from domain.entities.crm_sales import SalesOrder
from foundation import cache_versions
from foundation.fields import utc_now
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from tests.domain.conftest import fresh_process, world
from tests.rules.cast import World, dataset, new_order

__all__ = ["fresh_process", "world"]

pytestmark = pytest.mark.django_db
HOME = "/admin/"


def order(world: World, day: str = "2026-03-09", state: str = "Released", total: str = "10", **values: Any) -> str:
    """A stored order as it is some time later; its guid."""
    ds = dataset(world.context)
    result = new_order(ds, world, DocumentDate=datetime.date.fromisoformat(day), **values)
    ds.commit()
    SalesOrder.objects.filter(pk=result.id).update(state=state, total_line_amount=Decimal(total))
    return result.id


@pytest.fixture
def boss(client: Client, world: World) -> Client:
    """An administrator's browser."""
    client.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    return client


@pytest.fixture
def seller(world: World) -> Client:
    """The browser of a user who reads sales and nothing of the instance."""
    role = Role.objects.create(name="Sellers")
    for repository in ("Crm.Sales.*", "General.*"):
        RolePermission.objects.create(role=role, repository=repository, can_read=True)
    user = User.objects.create_user("seller", "secret")
    RoleUser.objects.create(role=role, user=user)
    cache_versions.expire()
    client = Client()
    client.force_login(user)
    return client


def card(client: Client, name: str) -> str:
    """The HTML of a card."""
    page = client.get(HOME).content.decode()
    found = re.search(rf'<article class="health-card [a-z]*" id="health-{name}">.*?</article>', page, re.S)
    assert found, page
    return found[0]


def table(html: str) -> dict[str, list[str]]:
    """Category → texts of its figures."""
    rows = re.findall(r'<th scope="row">(?:<a [^>]*>)?(.*?)(?:</a>)?</th>(.*?)</tr>', html)
    return {category: re.findall(r"<td>(.*?)</td>", cells) for category, cells in rows}


def test_orders_are_counted_by_state_and_each_state_leads_to_its_orders(boss: Client, world: World) -> None:
    for state in ("New", "Released", "Released", "Closed"):
        order(world, state=state)
    void = order(world, state="Released")
    SalesOrder.objects.filter(pk=void).update(void=True)
    order(world, "2025-03-31", state="New")  # a month too old
    order(world, "2025-04-01", state="New")
    shown = card(boss, "orders")
    counts = {state: int(count) for state, (count,) in table(shown).items()}
    assert counts == {"New": 2, "Planned": 0, "Firm planned": 0, "Released": 2, "Completed": 0, "Closed": 1}
    assert "<strong>5</strong> orders in twelve months" in shown
    assert "Orders by state, Apr 2025 to Mar 2026" in shown
    links = [unescape(link) for link in re.findall(r'<th scope="row"><a href="([^"]*)"', shown)]
    assert [boss.get(link).context["cl"].result_count for link in links] == list(counts.values())
    title = unescape(re.findall(r'<h3><a href="([^"]*)"', shown)[0])
    assert boss.get(title).context["cl"].result_count == 5


def test_sales_are_totals_of_released_orders_by_month_and_currency(boss: Client, world: World) -> None:
    ds = dataset(world.context)
    dollar = ds.create("General.Currencies.Currencies", {"CurrencySign": "USD", "Name": "Dollar"})
    ds.commit()
    order(world, "2026-03-09", total="1000.50")
    order(world, "2026-03-31", "Closed", total="0.25")
    order(world, "2026-01-01", "Completed", total="7")
    order(world, "2026-03-09", "New", total="500")  # nobody has released it
    order(world, "2026-02-09", total="3", DocumentCurrency=dollar.id)
    shown = card(boss, "sales")
    months = table(shown)
    assert next(iter(months)) == "Apr 2025"
    assert {month: texts for month, texts in months.items() if texts != ["0.00", "0.00"]} == {
        "Jan 2026": ["7.00", "0.00"], "Feb 2026": ["0.00", "3.00"], "Mar 2026": ["1,000.75", "0.00"],
    }  # fmt: skip
    assert '<th scope="col">EUR</th><th scope="col">USD</th>' in shown
    assert "<strong>1,007.75 EUR</strong>" in shown
    data = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', shown)[0])
    assert data["series"][0]["figures"][-3:] == [7.0, 0.0, 1000.75]
    march = unescape(re.findall(r'<a href="([^"]*)">Mar 2026', shown)[0])
    assert boss.get(march).context["cl"].result_count == 2


def test_a_year_does_not_end_after_the_current_month(boss: Client, world: World) -> None:
    today = utc_now().date()
    order(world, str(today), total="5")
    order(world, str(today + datetime.timedelta(days=70)), total="7")
    shown = card(boss, "sales")
    assert list(table(shown))[-1] == f"{today:%b %Y}"
    assert "<strong>5.00 EUR</strong>" in shown


def test_a_seller_sees_sales_by_the_row_policies_and_nothing_of_the_instance(
    boss: Client, seller: Client, world: World
) -> None:
    mine, other = order(world, total="10"), order(world, total="90")
    assert "<strong>100.00 EUR</strong>" in card(seller, "sales")
    number = SalesOrder.objects.get(pk=mine).document_no
    role = Role.objects.get(name="Sellers")
    RowPolicy.objects.create(
        role=role, repository="Crm.Sales.SalesOrders", filter=f"DocumentNo eq '{number}'", on_read=True, is_active=True
    )
    cache_versions.expire()
    assert "<strong>10.00 EUR</strong>" in card(seller, "sales")
    shown = card(seller, "orders")
    assert table(shown)["Released"] == ["1"]
    link = unescape(re.findall(r'<h3><a href="([^"]*)"', shown)[0])
    assert [str(row.pk) for row in seller.get(link).context["cl"].result_list] == [mine]
    page = seller.get(HOME).content.decode()
    assert re.findall(r'id="health-(\w+)"', page) == ["orders", "sales"]
    assert "<strong>100.00 EUR</strong>" in card(boss, "sales"), other


def test_who_may_not_read_orders_has_no_figures_of_them(seller: Client, world: World) -> None:
    order(world)
    RolePermission.objects.filter(repository="Crm.Sales.*").update(repository="Crm.Sales.Customers")
    cache_versions.expire()
    page = seller.get(HOME)
    assert page.status_code == 200
    assert "health-card" not in page.content.decode()


def test_without_orders_the_cards_say_so(boss: Client) -> None:
    for name in ("orders", "sales"):
        shown = card(boss, name)
        assert "<strong>0</strong>" in shown
        assert "No figures yet." in shown
        assert "chart-drawing" not in shown


def test_more_orders_ask_no_more_questions(seller: Client, world: World) -> None:
    def questions() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert seller.get(HOME).status_code == 200
        return len(asked)

    order(world)
    questions()
    few = questions()
    for month in range(1, 10):
        order(world, f"2026-0{month}-01", state="Closed")
    assert questions() <= few
