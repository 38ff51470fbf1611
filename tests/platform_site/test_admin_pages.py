"""The admin's lists and forms as people find their way in them (spec 09, 9.5); how they look is told by tests.pages."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from identity.models import User
from tests.rules.cast import dataset, make_world, new_order
from tests.webhooks.cast import new_currency

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss(client: Client) -> Client:
    """An administrator's browser."""
    client.force_login(User.objects.create_superuser("boss", "secret"))
    return client


def crumbs(page: str) -> list[tuple[str, str]]:
    """(URL, text) of the links above a page, then of the page itself, whose URL is empty."""
    shown = re.search(r'<div class="breadcrumbs">(.*?)</div>', page, re.S)
    assert shown, page
    return re.findall(r'<(?:a href="(.*?)"|span aria-current="page")>(.*?)</', shown[1])


def test_crumbs_lead_by_the_section_and_not_by_the_app(boss: Client) -> None:
    currency = new_currency("QQQ", "Quetzal")
    home, section = ("/admin/", "Home"), ("/admin/#finance", "Finance")
    currencies = (reverse("admin:domain_currency_changelist"), "Currencies")
    one = (reverse("admin:domain_currency_change", args=[currency.id]), "Quetzal (QQQ)")
    for page, expected in {
        currencies[0]: [home, section, ("", "Currencies")],
        one[0]: [home, section, currencies, ("", one[1])],
        reverse("admin:domain_currency_add"): [home, section, currencies, ("", "Add currency")],
        reverse("admin:domain_currency_history", args=[currency.id]): [home, section, currencies, one, ("", "History")],
        reverse("admin:domain_currency_delete", args=[currency.id]): [home, section, currencies, one, ("", "Delete")],
    }.items():
        assert crumbs(boss.get(page).content.decode()) == expected, page


@pytest.mark.parametrize(
    "path,target", [("/admin/domain/", "/admin/"), ("/admin/password_change/", "/id/account/password")]
)
def test_there_is_one_page_for_each_thing(boss: Client, path: str, target: str) -> None:
    assert boss.get(path).headers["Location"] == target


def test_a_list_without_rows_says_why(boss: Client) -> None:
    invoices = reverse("admin:domain_invoice_changelist")
    assert "There is nothing here yet." in boss.get(invoices).content.decode()
    for narrowed in ("?q=none", "?state=Released"):
        assert "Nothing fits this search" in boss.get(invoices + narrowed).content.decode(), narrowed
    new_currency("QQQ", "Quetzal")
    assert "list-empty" not in boss.get(reverse("admin:domain_currency_changelist")).content.decode()


def test_orders_tell_their_customers_without_a_question_for_each_row(boss: Client) -> None:
    world = make_world()
    ds = dataset(world.context)
    new_order(ds, world)
    ds.commit()
    address = reverse("admin:domain_salesorder_changelist")

    def questions() -> int:
        with CaptureQueriesContext(connection) as asked:
            page = boss.get(address)
        assert "Buyers &amp; Sons (C1)" in page.content.decode()
        return len(asked)

    questions()
    few = questions()
    ds = dataset(world.context)
    for _ in range(5):
        new_order(ds, world)
    ds.commit()
    assert questions() == few


def test_an_order_shows_its_lines_before_what_few_orders_have(boss: Client) -> None:
    page = boss.get(reverse("admin:domain_salesorder_add")).content.decode()
    titles = [title.strip() for title in re.findall(r'class="inline-heading">(.*?)</h2>', page, re.S)]
    assert titles[0] == "Lines"
    assert "Distributed amounts" in titles
    # A reference's page may be opened to change it; nobody deletes a customer on the page of an order.
    assert 'id="change_id_customer"' in page
    assert "delete-related" not in page
