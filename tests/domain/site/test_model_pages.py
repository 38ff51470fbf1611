"""The parts of the model browser: sets, what a search finds, and a set with all that belongs to it."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from identity.models import User
from tests.support.api import Api

pytestmark = pytest.mark.django_db

ORDERS = "Crm_Sales_SalesOrders"


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def hits(client: Client, words: str) -> list[str]:
    html = client.get("/api/model/sets", {"q": words}).content.decode()
    return re.findall(r'<a href="#([^"]*)"', html)


def test_all_sets_stand_in_their_namespaces(client: Client) -> None:
    html = client.get("/api/model/sets", {"name": "Crm_CustomerTypes"}).content.decode()
    assert re.match(r"\d+ sets in \d+ namespaces", text_of(html))
    assert '<a href="#Crm_Sales_CustomerTypes" aria-current="true">CustomerTypes</a>' in html, (
        "found by its former name, too"
    )
    assert html.count("<details open>") == 1


def test_a_search_finds_names_of_all_kinds_the_nearest_first(client: Client) -> None:
    assert hits(client, "crm_customertypes")[0] == "Crm_Sales_CustomerTypes"
    assert f"{ORDERS}/RequiredDeliveryDate" in hits(client, "requireddelivery")
    assert f"{ORDERS}/State" in hits(client, "firmplanned salesorders")
    assert f"{ORDERS}/ChangeState" in hits(client, "changestate crm_sales")
    assert hits(client, "there-is-none") == []
    assert client.get("/api/model/sets", {"q": "x" * 201}).status_code == 400


def test_a_set_is_shown_with_all_that_belongs_to_it(client: Client) -> None:
    html = client.get("/api/model/set", {"name": ORDERS}).content.decode()
    shown = text_of(html)
    for text in ("Crm.Sales.SalesOrders", "General_Documents_Documents", "up to 20 characters", "FirmPlanned 20",
                 "STATECHANGING", "ChangeState", "newState", "Referred to by"):  # fmt: skip
        assert text in shown, text
    assert 'id="m-DocumentNo"' in html
    assert re.search(r'id="m-Customer">.*?<a href="#Crm_Sales_Customers">', html, re.S)
    assert "Operations of the service" in client.get("/api/model/set").content.decode()


def test_a_token_shows_what_its_user_may_read(api: Api) -> None:
    User.objects.create_user(login="member", password="member", name={"EN": "Member"})
    browser = Client()
    browser.force_login(User.objects.get(login="member"))
    own = {"Authorization": f"Bearer {browser.post('/api/session').json()['accessToken']}"}
    every = {"Authorization": f"Bearer {api.token}"}
    shown = [Client().get("/api/model/sets", headers=headers).content.decode() for headers in ({}, every, own)]
    assert [ORDERS in html for html in shown] == [True, True, False]
    assert Client().get("/api/model/set", {"name": ORDERS}, headers=own).status_code == 400
    assert Client().get("/api/model/sets", headers={"Authorization": "Bearer nothing"}).status_code == 401
