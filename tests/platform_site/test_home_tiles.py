"""Saved queries on the home page: each tile reads with the rights of who looks (spec 01, 1.7; 09, 9.5)."""

from __future__ import annotations

import json
import re
import time
from html import unescape
from typing import Any
from urllib.parse import unquote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from domain.api_site.saved_queries import MOST_TILES, saved_query_pin
from domain.entities.general_currencies import Currency
from domain.model.saved_settings import SavedQuery, setting_delete, setting_save
from foundation import cache_versions, errors
from identity.models import Role, RolePermission, RoleUser, RowPolicy, User
from platform_site import tiles

pytestmark = pytest.mark.django_db
CURRENCIES = "General_Currencies_Currencies"
BY_SIGN = f"{CURRENCIES}?$apply=groupby((CurrencySign),aggregate($count as Number))&$orderby=CurrencySign"
BARS = {"kind": "bar", "label": "CurrencySign", "split": "", "values": ["Number"]}


GUID = "0187d2a0-0050-7000-8000-000000000000"
SIGNS = ["AUD", "BGN", "CHF", "EUR", "GBP", "JPY", "USD"]


def new_currency(sign: str, **values: Any) -> None:
    name: Any = {"EN": sign.lower()}
    Currency.objects.create(currency_sign=sign, name=name, **values)


@pytest.fixture(autouse=True)
def currencies(db: None) -> None:
    """Seven; and nothing is kept from other tests."""
    tiles._kept.clear()
    for sign in SIGNS:
        new_currency(sign)


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss", "vast-Harbour-42")


@pytest.fixture
def reader() -> User:
    """Reads currencies, and of those only the euro."""
    role = Role.objects.create(name="Readers of currencies")
    RolePermission.objects.create(role=role, repository="General.Currencies.*", can_read=True)
    RowPolicy.objects.create(
        role=role, repository="General.Currencies.Currencies", filter="CurrencySign eq 'EUR'", on_read=True
    )
    user = User.objects.create_user("reader", "secret")
    RoleUser.objects.create(role=role, user=user)
    cache_versions.expire()
    return user


def browser(user: User) -> Client:
    result = Client()
    result.force_login(user)
    return result


def pinned(user: User, path: str = BY_SIGN, chart: Any = None, owner: User | None = None) -> SavedQuery:
    """A query on the home page of the user; that of an owner is shared."""
    values = {"path": path, "is_shared": owner is not None, "chart": chart}
    query = setting_save(SavedQuery, (owner or user).pk, values, name=f"Query {SavedQuery.objects.count()}")
    saved_query_pin(user=user, query_id=query.pk, on_home=True)
    return query


def tile(user: User, query: SavedQuery, language: str = "en") -> str:
    """The HTML of the tile, as the home page's script asks for it."""
    answer = browser(user).get(f"/admin/tiles/{query.pk}/", headers={"Accept-Language": language})
    assert answer.status_code == 200
    assert answer.content.decode().startswith("<article")
    return answer.content.decode()


def drawn(html: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', html, re.S)[0])
    return data


def cells(html: str) -> list[str]:
    return re.findall(r"<td>(.*?)</td>", html)


def test_a_tile_draws_the_rows_that_its_reader_may_see(boss: User, reader: User) -> None:
    query = pinned(reader, chart=BARS, owner=boss)
    saved_query_pin(user=boss, query_id=query.pk, on_home=True)
    chart = drawn(tile(boss, query))
    assert (chart["kind"], chart["categories"]) == ("bar", SIGNS)
    assert chart["series"] == [{"name": "Number", "colour": "1", "line": False, "figures": [1.0] * 7}]
    mine = drawn(tile(reader, query))
    assert (mine["categories"], mine["series"][0]["figures"]) == (["EUR"], [1.0])


def test_the_home_page_has_a_place_for_each_tile_and_asks_nothing_of_it(boss: User) -> None:
    client = browser(boss)
    client.get("/admin/")
    with CaptureQueriesContext(connection) as before:
        client.get("/admin/")
    query = pinned(boss)
    with CaptureQueriesContext(connection) as after:
        page = client.get("/admin/").content.decode()
    assert len(after) <= len(before) + 1
    assert f'data-load="/admin/tiles/{query.pk}/"' in page
    link = unescape(re.findall(rf'id="health-tile-{query.pk}".*?<a href="([^"]*)"', page, re.S)[0])
    assert unquote(link) == f"/api/query#GET {BY_SIGN}"


def test_a_right_that_is_taken_away_is_told_at_once_and_costs_only_the_tile(boss: User, reader: User) -> None:
    query = pinned(reader, chart=BARS, owner=boss)
    assert "EUR" in tile(reader, query)
    RolePermission.objects.filter(role__name="Readers of currencies").update(can_read=False)
    RolePermission.objects.create(
        role=Role.objects.get(name="Readers of currencies"), repository="General.Products.*", can_read=True
    )
    cache_versions.bump("permissions")
    cache_versions.expire()
    refused = tile(reader, query)
    assert "You may not read what this query asks for." in refused
    assert "EUR" not in refused
    assert browser(reader).get("/admin/").status_code == 200


def test_a_query_that_is_shared_no_longer_is_gone_from_others_home_pages(boss: User, reader: User) -> None:
    query = pinned(reader, owner=boss)
    setting_save(SavedQuery, boss.pk, {"path": query.path, "is_shared": False}, name=query.name)
    client = browser(reader)
    assert client.get(f"/admin/tiles/{query.pk}/").status_code == 404
    assert "data-load" not in client.get("/admin/").content.decode()
    setting_delete(SavedQuery, boss.pk, query.pk)
    assert SavedQuery.on_home_of.through.objects.count() == 0


def test_only_who_has_the_tile_may_ask_for_it(boss: User, reader: User) -> None:
    query = pinned(boss)
    assert browser(reader).get(f"/admin/tiles/{query.pk}/").status_code == 404
    assert Client().get(f"/admin/tiles/{query.pk}/").status_code == 302
    assert browser(boss).post(f"/admin/tiles/{query.pk}/").status_code in (403, 405)


@pytest.mark.parametrize(
    "path,shown",
    [
        (f"{CURRENCIES}/$count?$filter=CurrencySign eq 'EUR'", "<strong>1</strong>"),
        (f"/{CURRENCIES}?$filter=CurrencySign eq 'E&+?#R'&$apply=aggregate($count as N)", "<strong>0</strong> N"),
        (f"https://erp.example/api/domain/odata/{CURRENCIES}?\n$filter=CurrencySign eq 'EUR'\n&$select=Name", "<td>"),
        (f"{CURRENCIES}?$filter=false", "There are no such rows."),
        ("No_Such_Set", "This query cannot be shown: "),
        (f"{CURRENCIES}?$filter=Nothing eq 1", "This query cannot be shown: "),
        (f"{CURRENCIES}?tr=00000000000000000000000000000000", "This query cannot be shown: "),
        ("$metadata", "…</td>"),
        (f"{CURRENCIES}({GUID})/CurrencySign/$value", "This query reads no rows"),
        ("ExecuteScript", "This query cannot be shown: "),
        ("%", "This query cannot be shown: "),
        ("", "<td>"),
    ],
)  # fmt: skip
def test_whatever_a_query_reads_its_tile_says_something(boss: User, path: str, shown: str) -> None:
    new_currency("XXX", pk=GUID)
    assert shown in tile(boss, pinned(boss, path))


def test_an_administrator_who_views_the_admin_as_somebody_sees_that_users_tiles(boss: User, reader: User) -> None:
    theirs, mine = pinned(reader, chart=BARS, owner=boss), pinned(boss)
    client = browser(boss)
    assert client.post(f"/admin/identity/user/{reader.pk}/view-as/").status_code == 302
    assert drawn(client.get(f"/admin/tiles/{theirs.pk}/").content.decode())["categories"] == ["EUR"]
    assert client.get(f"/admin/tiles/{mine.pk}/").status_code == 404


def test_a_table_has_five_rows_and_says_when_there_are_more(boss: User) -> None:
    ordered = f"{CURRENCIES}?$select=CurrencySign&$orderby=CurrencySign"
    many = tile(boss, pinned(boss, ordered))
    assert cells(many) == SIGNS[: tiles.TABLE_ROWS]
    assert "There are more rows" in many
    few = tile(boss, pinned(boss, f"{ordered}&$top=5"))
    assert cells(few) == SIGNS[:5]
    assert "There are more rows" not in few


def test_a_chart_of_a_column_that_is_gone_says_so(boss: User) -> None:
    query = pinned(boss, chart={**BARS, "values": ["Total"]})
    assert "The rows have no column Total any more" in tile(boss, query)


def test_a_tile_is_read_again_after_a_minute_and_at_once_when_the_query_changes(
    boss: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = pinned(boss, f"{CURRENCIES}/$count")
    assert "<strong>7</strong>" in tile(boss, query)
    new_currency("QQQ")
    assert "<strong>7</strong>" in tile(boss, query)
    later = time.monotonic() + tiles.LIFETIME_SECONDS + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert "<strong>8</strong>" in tile(boss, query)
    setting_save(SavedQuery, boss.pk, {"path": f"{CURRENCIES}/$count?$filter=false"}, name=query.name)
    assert "<strong>0</strong>" in tile(boss, query)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has the limit by connection (test_time_limit)")
def test_a_query_that_takes_too_long_ends_and_says_so(boss: User, settings: Any) -> None:
    settings.QUERY_SECONDS = 0.0
    assert "takes longer than" in tile(boss, pinned(boss, f"{CURRENCIES}?$filter=matchesPattern(Name,'u')"))


def test_a_user_has_at_most_six_tiles(boss: User) -> None:
    for _ in range(MOST_TILES):
        pinned(boss)
    with pytest.raises(errors.Refused, match="take one away first"):
        pinned(boss)
    first = SavedQuery.objects.filter(on_home_of=boss).first()
    assert first is not None
    saved_query_pin(user=boss, query_id=first.pk, on_home=True)  # it is there already
    saved_query_pin(user=boss, query_id=first.pk, on_home=False)
    pinned(boss)
