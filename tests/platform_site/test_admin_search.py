"""The admin's search (Ctrl-K) finds pages and entities, no more of them than the user may read."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from domain.model.registry import repositories
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from platform_site import admin_search
from platform_site.admin_search import SEARCHED
from tests.rules.cast import dataset, make_world, new_order

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine an answer may be cut short, as it should be."""
    monkeypatch.setattr(admin_search, "_LONGEST_SECONDS", 60.0)


def browser(login: str, *readable: str, hidden: str = "") -> Client:
    """Of somebody whose role reads the repositories, without the rows of `hidden`; of an administrator without any."""
    user = User.objects.create_user(login, "vast-Harbour-42", is_admin=not readable)
    role = Role.objects.create(name=login)
    RoleUser.objects.create(role=role, user=user)
    for name in readable:
        RolePermission.objects.create(role=role, repository=name, can_read=True)
    if hidden:
        RowPolicy.objects.create(role=role, repository=hidden, filter="false", on_read=True, is_active=True)
    client = Client()
    client.force_login(user)
    return client


def found(client: Client, term: str) -> dict[str, str]:
    """Text → URL."""
    page = client.get(reverse("admin:search"), {"s": term}).content.decode()
    links = re.findall(r'<a href="([^"]*)".*?<span class="font-medium">(.*?)</span>', page, re.S)
    return {unescape(text): url for url, text in links}


def test_pages_are_found_by_name_and_entities_by_name_or_number() -> None:
    world = make_world()
    boss = browser("boss")
    assert found(boss, "currenc")["Currencies"] == reverse("admin:domain_currency_changelist")
    assert next(iter(found(boss, "orders"))) == "Sales orders"
    assert reverse("admin:domain_product_change", args=[world.product]) in found(boss, "chair").values()
    assert reverse("admin:domain_customer_change", args=[world.customer]) in found(boss, "C1").values()
    assert found(boss, "there-is-none") == found(boss, " ") == {}


def test_pages_of_parts_are_found_too_after_those_of_the_navigation() -> None:
    make_world()
    boss = browser("boss")
    for term, name in {"routes": "route", "printouts": "printout", "measurement units": "measurementunit"}.items():
        assert reverse(f"admin:domain_{name}_changelist") in found(boss, term).values(), term
    assert reverse("admin:identity_roleuser_changelist") in found(boss, "role users").values()
    for repository in repositories:
        meta = repository.model._meta
        if repository.owner is not None and admin.site.is_registered(repository.model):
            address = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist")
            assert address in found(boss, str(meta.verbose_name_plural)).values(), repository.name
    reader = browser("reader", "General.Products.ProductCodes")
    assert "Product codes" in found(reader, "product codes")
    assert found(reader, "routes") == {}


def test_nobody_finds_what_they_may_not_read() -> None:
    world = make_world()
    product = reverse("admin:domain_product_change", args=[world.product])
    assert product in found(browser("reader", "General.Products.Products"), "chair").values()
    restricted = browser("restricted", "General.Products.*", hidden="General.Products.Products")
    assert "Products" in found(restricted, "product")
    assert product not in found(restricted, "chair").values()
    elsewhere = browser("elsewhere", "General.Currencies.Currencies")
    assert found(elsewhere, "chair") == found(elsewhere, "product") == {}
    assert Client().get(reverse("admin:search"), {"s": "chair"}).status_code == 302


def test_an_answer_is_short_and_takes_few_queries() -> None:
    world = make_world()
    ds = dataset(world.context)
    for _ in range(7):
        new_order(ds, world)
    ds.commit()
    boss = browser("boss")
    found(boss, "00")
    with CaptureQueriesContext(connection) as asked:
        orders = [url for url in found(boss, "00").values() if "/salesorder/" in url]
    assert len(orders) == 5
    assert len(asked) < len(SEARCHED) + 8


def test_an_answer_that_is_cut_short_says_where_it_has_not_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    reader = browser("reader", "General.Products.Products", "Crm.Sales.Customers", "General.Currencies.Currencies")
    page = reader.get(reverse("admin:search"), {"s": "chair"}).content.decode()
    assert "No time was left" not in page
    monkeypatch.setattr(admin_search, "_LONGEST_SECONDS", -1.0)
    page = reader.get(reverse("admin:search"), {"s": "chair"}).content.decode()
    # What the reader may read of what is searched.
    assert "No time was left to look in: Customers, Products." in page
    assert "Nothing found." not in page
    assert world.product not in page


def test_what_is_searched_can_be_searched() -> None:
    assert [name for name in SEARCHED if repositories[name].owner is not None] == []
