"""Reads as of a time (spec 12, 12.3): they answer as the data stood, whatever has been done to it since."""

from __future__ import annotations

import datetime
import json
import random
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from domain.dataset.dataset import Dataset
from domain.dataset.tables.history import RepositoryTracking
from foundation import cache_versions
from foundation.fields import utc_now
from tests.rules.cast import PRODUCTS, World, new_line, new_order, new_product
from tests.support.api import Api, error_of

TABLES = "/tableapi/odata/"
ORDERS, LINES, PRODUCT_SET = "Crm_Sales_SalesOrders", "Crm_Sales_SalesOrderLines", "General_Products_Products"
#: A question of each kind; the answers are compared row by row.
QUERIES = (
    f"{ORDERS}?$count=true",
    f"{ORDERS}?$expand=Lines($expand=Product($select=PartNumber,Name),SalesOrder($select=Id);$orderby=LineNo desc)",
    f"{ORDERS}?$filter=contains(DocumentNotes,'1') or Lines/any(l:l/QuantityBase gt 3)&$orderby=DocumentNotes desc,Id",
    f"{ORDERS}?$select=Id,DocumentNotes,State,DisplayText,ReferenceDate&$orderby=ReferenceDate&$top=3&$skip=1",
    f"{ORDERS}?$filter=ReferenceDate ge 2026-02-01T00:00:00Z and Void eq false&$count=true&$top=1",
    f"{LINES}?$filter=Product/PartNumber ne 'P1'&$select=Id,Quantity,UnitPrice,Notes,ObjectVersion&$expand=Product",
    f"{LINES}?$apply=groupby((Product/PartNumber),aggregate(QuantityBase with sum as Total,$count as Number))",
    f"{PRODUCT_SET}?$filter=Name/EN ge 'C'&$orderby=PartNumber",
    f"{PRODUCT_SET}?$search=chair&$select=PartNumber,Name,Active,StandardLotSizeBase",
    f"{PRODUCT_SET}/$count",
)
TABLE_QUERIES = ("Crm_Sales_Orders?$orderby=Id", "Gen_Products?$count=true&$orderby=Part_Number&$top=5")


def track(*names: str) -> None:
    for name in names:
        RepositoryTracking.objects.get_or_create(
            repository_name=name,
            defaults={"tracking_level": "TrackObjectAndAttributeChanges", "tracked_since": utc_now()},
        )
    cache_versions.bump("tracking")
    cache_versions.expire()


def answer(api: Api, query: str, at: datetime.datetime | None = None) -> Any:
    """Every row, over all pages, and the number."""
    path, rows, number = query, [], None
    if at is not None:
        path += f"{'&' if '?' in query else '?'}$at={quote(at.isoformat())}"
    while True:
        response = api.get(path, Prefer="odata.maxpagesize=3")
        assert response.status_code == 200, (path, response.content)
        if "/$count" in path:
            return int(response.content)
        body = json.loads(response.content)
        rows += body["value"]
        number = body.get("@odata.count", number)
        if "@odata.nextLink" not in body:
            return rows, number
        path = body["@odata.nextLink"].partition("/odata/")[2]


class Story:
    """Random changes of orders, their lines and products."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.chance = world, random.Random(seed)
        self.orders: list[str] = []
        self.products = [world.product]
        self.number = 0

    def step(self) -> None:
        """One commit."""
        ds = Dataset(self.world.context)
        chance = self.chance
        do = chance.choice(
            (
                "order",
                "order",
                "line",
                "edit",
                "edit",
                "edit line",
                "edit line",
                "drop line",
                "drop",
                "product",
                "name",
                "remove",
            )
        )
        self.number += 1
        if do == "order" or not self.orders:
            order = new_order(ds, self.world, DocumentNotes=self._text(), ReferenceDate=self._date())
            for _ in range(chance.randint(0, 3)):
                self._line(ds, order)
            self.orders.append(order.id)
        elif do == "product":
            self.products.append(new_product(ds, self.world, f"N{self.number}").id)
        elif do == "name":
            product = ds.load(PRODUCTS, chance.choice(self.products))
            assert product is not None
            ds.set(product, "Name", {"EN": f"Chair {self._text()}", "BG": "Стол"})
            ds.set(product, "Active", chance.random() < 0.5)
        elif do == "remove":
            self._try_to_remove(ds)
        else:
            self._change(ds, do)
        ds.commit()

    def _change(self, ds: Dataset, do: str) -> None:
        chance = self.chance
        order = ds.load("Crm.Sales.SalesOrders", chance.choice(self.orders))
        assert order is not None
        lines = order.children("Lines")
        if do == "drop":
            ds.delete(order)
            self.orders.remove(order.id)
        elif do == "line" or (do != "edit" and not lines):
            self._line(ds, order)
        elif do == "edit":
            ds.set(order, "DocumentNotes", self._text())
            ds.set(order, "ReferenceDate", self._date())
        elif do == "drop line":
            ds.delete(chance.choice(lines))
        else:
            line = chance.choice(lines)
            ds.set(line, "Quantity", self._quantity(line))
            ds.set(line, "Product", chance.choice(self.products))
            ds.set(line, "Notes", self._text())

    def _quantity(self, line: Any) -> Any:
        return type(line.values.get("Quantity") or 0)(self.chance.randint(1, 9))

    def _try_to_remove(self, ds: Dataset) -> None:
        fresh = new_product(ds, self.world, f"T{self.number}")
        ds.commit()
        ds.delete(fresh)

    def _line(self, ds: Dataset, order: Any) -> None:
        line = new_line(ds, self.world, order, Product=self.chance.choice(self.products))
        ds.set(line, "Notes", self._text())

    def _text(self) -> str | None:
        sign = self.chance.choice("àé1Ж'%")
        return None if self.chance.random() < 0.2 else f"{sign} {self.chance.randint(1, 30)}"

    def _date(self) -> datetime.datetime | None:
        return (
            None
            if self.chance.random() < 0.2
            else datetime.datetime(
                2026, self.chance.randint(1, 5), 3, 1, 2, 3, self.chance.choice((0, 500_000)), datetime.UTC
            )
        )


def tell(api: Api, world: World, *, steps: int, every: int, seed: int) -> None:
    track(PRODUCTS)
    tables = Client()
    story = Story(world, seed)
    kept: list[tuple[datetime.datetime, list[Any]]] = []
    for number in range(steps):
        story.step()
        if number % every == every - 1:
            told = [answer(api, query) for query in QUERIES]
            told += [rows_of_table(tables, api, query) for query in TABLE_QUERIES]
            kept.append((utc_now(), told))
    for moment, told in kept:
        for query, before in zip(QUERIES, told, strict=False):
            assert answer(api, query, moment) == before, (seed, moment, query)
        for query, before in zip(TABLE_QUERIES, told[len(QUERIES) :], strict=True):
            assert rows_of_table(tables, api, query, moment) == before, (seed, moment, query)


def rows_of_table(client: Client, api: Api, query: str, at: datetime.datetime | None = None) -> Any:
    """The rows of the Table API."""
    path = query if at is None else f"{query}&$at={quote(at.isoformat())}"
    response: Any = client.get(TABLES + path, headers={"Authorization": f"Bearer {api.token}"})
    body = b"".join(response.streaming_content) if response.streaming else response.content
    assert response.status_code == 200, body
    found = json.loads(body)
    return found["value"], found.get("@odata.count")


def test_answers_are_those_of_the_time(api: Api, world: World) -> None:
    tell(api, world, steps=40, every=8, seed=1)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_the_time_at_length(api: Api, world: World, seed: int) -> None:
    tell(api, world, steps=1000, every=100, seed=seed)


def test_one_entity_and_what_belongs_to_it_as_of_a_time(api: Api, world: World) -> None:
    ds = Dataset(world.context)
    order = new_order(ds, world, DocumentNotes="before")
    line = new_line(ds, world, order, Notes="of the line")
    ds.commit()
    at = utc_now()
    when = f"$at={quote(at.isoformat())}"
    path = f"{ORDERS}({order.id})"
    before = api.read(f"{path}?$expand=Lines")
    api.patch(path, {"DocumentNotes": "after"})
    assert api.delete(f"{LINES}({line.id})").status_code == 204
    assert api.read(f"{path}?{when}&$expand=Lines") == before
    assert api.read(f"{path}/DocumentNotes?{when}")["value"] == "before"
    assert api.read(f"{path}/Lines?{when}")["value"][0]["Notes"] == "of the line"
    assert api.read(f"{path}/Lines/$count?{when}") == 1
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404
    assert api.read(f"{path}?{when}&$expand=Lines") == before
    long_before = f"$at={quote((at - datetime.timedelta(seconds=1)).isoformat())}"
    assert api.get(f"{path}?{long_before}").status_code in (400, 404)


def test_times_that_the_history_does_not_know_are_refused(api: Api, world: World) -> None:
    def refused(query: str) -> str:
        response = api.get(query)
        assert response.status_code in (400, 501), response.content
        return str(error_of(response)["message"])

    now = quote(utc_now().isoformat())
    assert "General.Products.Products" in refused(f"{PRODUCT_SET}?$at={now}")
    assert "begins at" in refused(f"{ORDERS}?$at=2001-01-01T00:00:00Z")
    assert "future" in refused(f"{ORDERS}?$at=2901-01-01T00:00:00Z")
    for text in ("", "yesterday", "2026-01-31T12:00:00", "2026-02-31T12:00:00Z", "0000-00-00", "9" * 400):
        assert "$at" in refused(f"{ORDERS}?$at={text}")
    assert "$at" in refused(f"{ORDERS}?$at={now}&$at={now}")
    assert api.post(f"{ORDERS}?$at={now}", {}).status_code == 400
    assert "$at" in refused(f"GetVersion()?$at={now}")
    inside = api.begin()
    assert inside.get(f"{ORDERS}?$at={now}").status_code == 400
    # Without the $ it is a name like any other.
    assert api.get(f"{ORDERS}?at=noon&from=here").status_code == 200


def test_the_versions_of_one_entity(api: Api, world: World) -> None:
    ds = Dataset(world.context)
    began = utc_now()
    order = new_order(ds, world, DocumentNotes="0")
    ds.commit()
    path = f"{ORDERS}({order.id})"
    for number in range(1, 4):
        api.patch(path, {"DocumentNotes": str(number)})
    period = f"$from={quote(began.isoformat())}&$to={quote(utc_now().isoformat())}"
    found = api.read(f"{path}?{period}&$select=DocumentNotes")["value"]
    assert [each["DocumentNotes"] for each in found] == ["0", "1", "2", "3"]
    assert [each["@erpnet.to"] for each in found[:-1]] == [each["@erpnet.from"] for each in found[1:]]
    assert "@erpnet.to" not in found[-1]
    third = quote(found[2]["@erpnet.from"])
    assert [each["DocumentNotes"] for each in api.read(f"{path}?$from={third}")["value"]] == ["2", "3"]
    assert api.get(f"{ORDERS}?{period}").status_code == 501
    assert api.get(f"{path}?$from=2026").status_code == 400


def test_the_versions_of_an_entity_that_is_older_than_its_history(api: Api, world: World) -> None:
    track(PRODUCTS)
    path = f"{PRODUCT_SET}({world.product})"
    first = api.read(f"{path}?$select=Name")["Name"]["EN"]
    between = [quote(utc_now().isoformat())]
    for notes in ("second", "third"):
        assert api.patch(path, {"Name": {"EN": notes}}).status_code == 204
        between.append(quote(utc_now().isoformat()))

    def versions(period: str) -> list[Any]:
        found = api.read(f"{path}?{period}&$select=Name")["value"]
        assert [each.get("@erpnet.to") for each in found] == [each["@erpnet.from"] for each in found[1:]] + [None]
        return [each["Name"]["EN"] for each in found]

    assert versions(f"$to={between[0]}") == [first]
    assert versions(f"$to={between[1]}") == [first, "second"]
    assert versions(f"$to={between[2]}") == [first, "second", "third"]
    since = RepositoryTracking.objects.get(repository_name=PRODUCTS).tracked_since
    assert since is not None
    assert versions(f"$from={quote(since.isoformat())}") == [first, "second", "third"]
    for period in (
        f"$to={quote((since - datetime.timedelta(days=1)).isoformat())}",
        f"$from={between[1]}&$to={between[0]}",
    ):
        assert api.get(f"{path}?{period}").status_code == 400, period
    RepositoryTracking.objects.filter(repository_name=PRODUCTS).update(retention_days=1)
    cache_versions.bump("tracking")
    cache_versions.expire()
    assert versions(f"$to={between[2]}") == [first, "second", "third"]


def test_values_of_custom_properties_as_a_table(api: Api, world: World) -> None:
    """Also of entities deleted since; refused if the history does not keep one of the repositories that have some."""
    definition = {"Code": "colour", "Name": {"EN": "Colour"}, "PropertyType": "Text"}
    api.create("Systems_Bpm_CustomProperties", {**definition, "EntityName": "Crm_Sales_Orders"})
    cache_versions.expire()
    ds = Dataset(world.context)
    orders = [f"{ORDERS}({new_order(ds, world).id})" for _ in range(2)]
    ds.commit()
    for order, colour in zip(orders, ("red", "green"), strict=True):
        assert api.patch(order, {"CustomProperty_colour": colour}).status_code == 204
    table = "Gen_Property_Values?$select=Entity_Item_Id,Property_Value,Description&$orderby=Property_Value"
    client, before = Client(), utc_now()
    then = rows_of_table(client, api, table)
    assert [row["Property_Value"] for row in then[0]] == ["green", "red"]
    assert api.patch(orders[0], {"CustomProperty_colour": "blue"}).status_code == 204
    assert api.delete(orders[1]).status_code == 204
    assert rows_of_table(client, api, table, before) == then
    some = "Gen_Property_Values?$filter=Property_Value eq 'red'&$count=true"
    assert rows_of_table(client, api, some, before)[1] == 1
    assert rows_of_table(client, api, some)[1] == 0
    api.create("Systems_Bpm_CustomProperties", {**definition, "EntityName": "Gen_Products"})
    cache_versions.expire()
    when = quote(before.isoformat())
    answer = client.get(f"{TABLES}{table}&$at={when}", headers={"Authorization": f"Bearer {api.token}"})
    assert (answer.status_code, "General.Products.Products" in str(answer.content)) == (400, True)


def test_pictures_are_those_of_the_time_from_level_4_on(api: Api, world: World) -> None:
    groups = "General_Products_ProductGroups"

    def set_level(level: str) -> None:
        RepositoryTracking.objects.update_or_create(
            repository_name="General.Products.ProductGroups",
            defaults={"tracking_level": level, "tracked_since": began},
        )
        cache_versions.bump("tracking")
        cache_versions.expire()

    began = utc_now()
    group = api.read(f"{PRODUCT_SET}({world.product})/ProductGroup?$select=Id")["@odata.id"]
    set_level("TrackObjectAndAttributeChanges")
    times = [began]
    for level, picture in (
        ("TrackObjectAttributeAndBlobChanges", "AAEC"),
        ("TrackObjectAttributeAndBlobChanges", None),
        ("TrackObjectAttributeAndBlobChanges", "/v8="),
        ("TrackObjectAndAttributeChanges", "AA=="),
    ):
        set_level(level)
        times.append(utc_now())
        assert api.patch(group, {"Picture": picture}).status_code == 204
        times.append(utc_now())
    kept = [api.read(f"{group}?$select=Picture&$at={quote(at.isoformat())}")["Picture"] for at in times]
    # Of what level 3 changed the pictures are those of now.
    assert kept == [None, None, "AAEC", "AAEC", None, None, "AA==", "AA==", "AA=="]
    when = quote(times[2].isoformat())
    raw = api.get(f"{group}/Picture/$value?$at={when}")
    assert (raw.status_code, raw.content) == (200, b"\x00\x01\x02")
    assert api.read(f"{groups}?$filter=Picture ne null&$count=true&$top=0&$at={when}")["@odata.count"] == 1
    assert api.delete(group).status_code >= 400, "products belong to it"
