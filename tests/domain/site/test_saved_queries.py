"""Saved queries of the query tool: own and shared ones, bounds, and who may not."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, expect

from domain.model.saved_settings import MOST_OF_USER, SavedQuery
from identity.models import User
from tests.support.accessibility import violations
from tests.support.chromium import log_in, watched_page
from tests.support.platform import LivePlatform

QUERIES = "/api/queries"
ORDERS = "Crm_Sales_SalesOrders?$top=3"


class Person:
    """A signed-in browser, which sends the proof that its page carries."""

    def __init__(self, login: str, **options: Any) -> None:
        self.user = User.objects.create_user(login=login, password=login, name={"EN": login}, **options)
        self.client = Client(enforce_csrf_checks=True)
        self.client.force_login(self.user)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        page = self.client.get("/api/query").content.decode()
        proof = re.search(r'name="csrf-token" content="([^"]+)"', page)
        assert proof
        headers = {"X-CSRFToken": proof[1]}
        return self.client.generic(
            method, path, b"" if body is None else json.dumps(body), content_type="application/json", headers=headers
        )

    def save(self, name: str, path: str = ORDERS, *, shared: bool = False) -> Any:
        return self.send("POST", QUERIES, {"name": name, "path": path, "isShared": shared})

    def names(self) -> list[str]:
        return [query["name"] for query in self.client.get(QUERIES).json()]


@pytest.fixture
def anna(db: None) -> Person:
    return Person("anna-saves")


@pytest.fixture
def boris(db: None) -> Person:
    return Person("boris-reads")


def test_own_queries_come_first_and_others_only_if_shared(anna: Person, boris: Person) -> None:
    assert anna.save("Zones").status_code == 200
    assert anna.save("All orders", shared=True).json()["owner"] == "anna-saves"
    boris.save("Mine")
    assert anna.names() == ["All orders", "Zones"]
    assert boris.names() == ["Mine", "All orders"]


def test_a_query_of_the_same_name_is_replaced(anna: Person, boris: Person) -> None:
    anna.save("Orders", shared=True)
    anna.save("Orders", "Crm_Sales_SalesOrders?$top=9")
    assert [(each["path"], each["isShared"]) for each in anna.client.get(QUERIES).json()] == [
        ("Crm_Sales_SalesOrders?$top=9", False)
    ]
    assert boris.names() == []


def test_only_the_owner_deletes_a_query(anna: Person, boris: Person) -> None:
    address = f"{QUERIES}/{anna.save('Orders', shared=True).json()['id']}"
    assert boris.send("DELETE", address).status_code == 404
    assert anna.send("DELETE", address).status_code == 204
    assert SavedQuery.objects.count() == 0


def test_a_users_queries_are_bounded_in_number_and_size(anna: Person) -> None:
    SavedQuery.objects.bulk_create(
        SavedQuery(user=anna.user, name=f"{number}", path=ORDERS) for number in range(MOST_OF_USER)
    )
    refused = anna.save("One more")
    assert (refused.status_code, refused.json()["error"]["type"]) == (500, "ValidationFailed")
    assert anna.save("7", "Other").status_code == 200
    assert anna.save("8", "x" * 4001).status_code == 400
    assert anna.save("y" * 81).status_code == 400
    assert SavedQuery.objects.count() == MOST_OF_USER


def test_strangers_external_users_and_other_sites_have_none(anna: Person) -> None:
    assert Client().get(QUERIES).status_code == 401
    outside = Person("external-saves", user_type="ExternalCommunityUser")
    assert outside.client.get(QUERIES).status_code == 403
    assert outside.save("Orders").status_code == 403
    forged = anna.client.post(QUERIES, {"name": "x", "path": "y"}, content_type="application/json")
    assert forged.status_code == 403
    assert SavedQuery.objects.count() == 0


CHART = {"kind": "line", "label": "State", "split": "", "values": ["Orders"]}


def test_a_query_is_saved_with_its_chart(anna: Person, boris: Person) -> None:
    body = {"name": "States", "path": ORDERS, "isShared": True, "chart": CHART}
    assert anna.send("POST", QUERIES, body).json()["chart"] == CHART
    assert boris.client.get(QUERIES).json()[0]["chart"] == CHART
    anna.save("States")
    assert anna.client.get(QUERIES).json()[0]["chart"] is None


@pytest.mark.parametrize(
    "change",
    [{"kind": "radar"}, {"values": []}, {"values": ["A"] * 6}, {"label": ""}, {"values": ["x" * 201]}, {"values": 7}],
    ids=["kind", "no value", "six values", "no label", "long", "no list"],
)
def test_a_chart_that_cannot_be_drawn_is_refused(anna: Person, change: dict[str, Any]) -> None:
    body = {"name": "States", "path": ORDERS, "chart": {**CHART, **change}}
    assert anna.send("POST", QUERIES, body).status_code == 400
    assert SavedQuery.objects.count() == 0


def test_own_and_shared_queries_go_to_ones_own_home_page(anna: Person, boris: Person) -> None:
    mine, ours = anna.save("Mine").json()["id"], anna.save("Ours", shared=True).json()["id"]
    assert boris.send("PATCH", f"{QUERIES}/{ours}", {"onHome": True}).status_code == 204
    assert boris.send("PATCH", f"{QUERIES}/{mine}", {"onHome": True}).status_code == 404
    assert boris.send("PATCH", f"{QUERIES}/{ours}", {}).status_code == 400
    assert [(each["name"], each["onHome"]) for each in boris.client.get(QUERIES).json()] == [("Ours", True)]
    assert not any(each["onHome"] for each in anna.client.get(QUERIES).json())
    assert boris.send("PATCH", f"{QUERIES}/{ours}", {"onHome": False}).status_code == 204
    assert not any(each["onHome"] for each in boris.client.get(QUERIES).json())


@pytest.mark.browser
@pytest.mark.process
def test_a_query_is_saved_opened_and_deleted_by_keyboard(live_platform: LivePlatform, chromium: Browser) -> None:
    with watched_page(chromium, live_platform.base_url) as page:
        page.goto("/id/account/login?next=/api/query")
        log_in(page)
        page.wait_for_selector("html[data-model]")
        page.keyboard.type(ORDERS)
        page.keyboard.press("Escape")
        page.locator("#save-name").focus()
        page.keyboard.type("Three orders")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.locator("#save-name").press("Enter")
        saved = page.locator("#saved").get_by_role("link", name="Three orders")
        expect(saved).to_be_visible()
        expect(page.locator("#saved li")).to_contain_text("shared")
        assert violations(page) == []
        page.goto("/api/query#GET%20General_Currencies_Currencies")
        expect(page.locator("#path")).to_have_value("General_Currencies_Currencies")
        saved.press("Enter")
        expect(page.locator("#path")).to_have_value(ORDERS)
        page.get_by_role("button", name="Delete Three orders").press("Enter")
        expect(saved).to_have_count(0)
