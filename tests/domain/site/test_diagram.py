"""The diagram of a set and its neighbours: drawn by the server, each with a link, and never larger than a screen."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

import pytest
from django.test import Client
from playwright.sync_api import Browser, expect

from domain.admin.diagram import MOST_NEIGHBOURS, diagram
from domain.model.registry import repositories
from tests.support.accessibility import violations
from tests.support.chromium import PHONE, fits, watched_page
from tests.support.platform import LivePlatform

ORDERS = "Crm_Sales_SalesOrders"


def neighbours_of(html: str) -> dict[str, list[tuple[str, str]]]:
    """incoming, outgoing or owned → (link, title) of the boxes."""
    found: dict[str, list[tuple[str, str]]] = {}
    for link, kind, title in re.findall(r'<a href="([^"]*)" class="(\w+)"><title>(.*?)</title>', html):
        found.setdefault(kind, []).append((unescape(link), unescape(title)))
    return found


@pytest.mark.django_db
def test_references_both_ways_and_owned_collections_are_links(client: Client) -> None:
    answer = client.get("/api/model/set?name=Crm_Sales_CustomerTypes")
    assert answer.status_code == 200
    found = neighbours_of(answer.content.decode())
    assert ("#Crm_Sales_Customers", "Crm_Sales_Customers: CustomerType") in found["incoming"]
    order = neighbours_of(client.get(f"/api/model/set?name={ORDERS}").content.decode())
    assert ("#Crm_Sales_SalesOrderLines", "Crm_Sales_SalesOrderLines: Lines") in order["owned"]
    customers = dict(order["outgoing"])["#Crm_Sales_Customers"]
    assert "Customer" in customers.partition(": ")[2].split(", ")
    # The parts of an order refer to it, too: they are among what it owns.
    assert "#Crm_Sales_SalesOrderLines" not in dict(order["incoming"])


def test_each_neighbour_is_drawn_or_listed_once_and_few_are_drawn() -> None:
    most = 0
    for repository in repositories:
        found = diagram(repository)
        drawn = [box.neighbour for box in found.boxes]
        assert len(drawn) <= MOST_NEIGHBOURS
        assert not found.others or len(drawn) == MOST_NEIGHBOURS
        shown = [(each.kind, each.set_name) for each in (*drawn, *found.others)]
        assert len(shown) == len(set(shown)), repository.name
        referred = {repositories[each.target].set_name for each in repository.references.values()}
        assert {name for kind, name in shown if kind == "outgoing"} == referred
        owned = {repositories[child.repository].set_name for child in repository.collections.values()}
        assert {name for kind, name in shown if kind == "owned"} == owned
        most = max(most, len(shown))
    assert most > MOST_NEIGHBOURS, "no repository needs the list"


def test_boxes_do_not_overlap() -> None:
    for repository in repositories:
        found = diagram(repository)
        places = sorted((box.x, box.y) for box in found.boxes)
        for (x, y), (next_x, next_y) in pairwise(places):
            assert x != next_x or next_y - y >= found.box_height, repository.name
        # No column is longer than what refers to it or what it refers to, unless both are full.
        columns = [sum(box.x < found.x for box in found.boxes), sum(box.x > found.x for box in found.boxes)]
        kinds = [sum(box.neighbour.kind == kind for box in found.boxes) for kind in ("incoming", "outgoing")]
        assert max(columns) <= max(*kinds, (sum(columns) + 1) // 2), repository.name
        assert all(0 <= box.y <= found.height - found.box_height for box in found.boxes)


def test_a_side_without_neighbours_takes_no_room() -> None:
    for repository in repositories:
        found = diagram(repository)
        ends = [(box.x, box.x + found.box_width) for box in found.boxes] + [(found.x, found.x + found.box_width)]
        first, last = min(start for start, _ in ends), max(end for _, end in ends)
        assert first - found.shown_from == found.shown_from + found.shown_width - last == 8, repository.name


@pytest.mark.django_db
def test_an_unknown_set_has_none(client: Client) -> None:
    assert client.get("/api/model/set?name=Nope").status_code == 400


@pytest.mark.browser
@pytest.mark.process
def test_the_model_browser_shows_it_and_follows_it_by_keyboard(live_platform: LivePlatform, chromium: Browser) -> None:
    with watched_page(chromium, live_platform.base_url, reduced_motion="reduce") as page:
        page.goto(f"/api/model#{ORDERS}")
        link = page.locator(".diagram svg a[href='#Crm_Sales_Customers']")
        expect(link.first).to_be_visible()
        assert violations(page) == []
        page.emulate_media(color_scheme="dark")
        assert violations(page, only=("color-contrast",)) == []
        link.first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#entity h2")).to_have_text("Crm_Sales_Customers")
        expect(page.locator(".diagram svg text.middle")).to_have_text("Customers")
        page.set_viewport_size(PHONE)
        assert fits(page)
