"""Autoflush shows queries what is pending, and only what they touch (spec 03, 3.2)."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from domain.dataset.dataset import Dataset
from domain.dataset.tables.models import PendingChange
from domain.model.registry import repositories
from foundation import errors
from tests.domain.odata.test_writing import CURRENCIES, LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World, new_line, new_order, new_product
from tests.support.api import Api, error_of


def written(captured: CaptureQueriesContext) -> set[str]:
    """Tables of entities that statements wrote."""
    tables = {name for repository in repositories for name, _ in repository.tables}
    found = (re.match(r'(?:\d+ times: )?(?:INSERT INTO|UPDATE|DELETE FROM) "(\w+)"', q["sql"]) for q in captured)
    return {match[1] for match in found if match is not None} & tables


def test_a_query_writes_only_what_it_touches(ds: Dataset, world: World) -> None:
    new_product(ds, world)
    ds.create("General.Currencies.Currencies", {"CurrencySign": "USD", "Name": "Dollar"})
    with CaptureQueriesContext(connection) as captured:
        found = ds.find_all("General.Currencies.Currencies", currency_sign__startswith="US")
    assert [record.values["Name"] for record in found] == ["Dollar"]
    assert written(captured) == {repositories["General.Currencies.Currencies"].table}


def test_a_read_in_a_transaction_loads_only_the_rows_it_touches(api: Api, world: World) -> None:
    inside = api.begin()
    inside.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    inside.create(ORDERS, order_body(world, {"Quantity": 1}))
    with CaptureQueriesContext(connection) as captured:
        assert len(inside.read(f"{CURRENCIES}?$select=Name")["value"]) == 2
    assert written(captured) == {repositories["General.Currencies.Currencies"].table}
    with CaptureQueriesContext(connection) as captured:
        assert len(inside.read(f"{PRODUCTS}?$select=PartNumber")["value"]) == 1
    assert written(captured) == set()


def test_joins_expansions_and_bases_are_touched_too(api: Api, world: World) -> None:
    # The frontend model fills in at once what is required; the number alone would wait for the commit.
    inside = api.begin(model="frontend")
    made = inside.create(ORDERS, order_body(world, {"Quantity": 3}, DocumentNo="N1"))
    inside.patch(f"{PRODUCTS}({world.product})", {"PartNumber": "P77"})
    lines = inside.read(f"{LINES}?$filter=Product/PartNumber eq 'P77'&$expand=SalesOrder($select=State)")["value"]
    assert [line["SalesOrder"]["State"] for line in lines] == ["New"]
    documents = inside.read("General_Documents_Documents?$select=Id")["value"]
    assert [entry["@odata.id"].partition("(")[2] for entry in documents] == [made["@odata.id"].partition("(")[2]]


def test_what_refers_to_something_incomplete_stays_out(api: Api, world: World) -> None:
    inside = api.begin()
    group = inside.post("General_Products_ProductGroups", {"Code": "G7"}).json()
    stored = api.read(f"{PRODUCTS}({world.product})")
    kept = {name: stored[name] for name in ("BaseMeasurementCategory", "MeasurementUnit", "ProductType")}
    body = {**kept, "PartNumber": "P5", "Name": {"EN": "x"}, "ProductGroup": {"@odata.id": group["@odata.id"]}}
    made = inside.post(PRODUCTS, body).json()
    # Asks for products alone: that the group lacks a name is found out all the same.
    assert inside.get(f"{PRODUCTS}/$count").content == b"1"
    assert inside.read(made["@odata.id"])["PartNumber"] == "P5"
    inside.patch(group["@odata.id"], {"Name": {"EN": "now"}})
    assert inside.get(f"{PRODUCTS}/$count").content == b"2"


def test_a_pending_delete_of_what_is_in_use_does_not_break_reads(api: Api, world: World) -> None:
    inside = api.begin()
    assert inside.delete(f"{CURRENCIES}({world.currency})").status_code == 204
    assert inside.read(CURRENCIES)["value"] == []
    assert error_of(inside.end())["type"] == "ReferenceInUse"
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_two_pending_entities_that_cannot_both_be_are_named(api: Api) -> None:
    inside = api.begin()
    inside.create(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"})
    inside.post(CURRENCIES, {"CurrencySign": "USD", "Name": "Dollar"}, Prefer="return=minimal")
    assert error_of(inside.get(CURRENCIES))["code"] == 2129
    assert PendingChange.objects.count() == 2


def test_a_flush_leaves_nothing(ds: Dataset, world: World) -> None:
    new_order(ds, world)
    with ds.flushed():
        assert repositories["Crm.Sales.SalesOrders"].model._default_manager.count() == 0  # lacks its number
        assert len(ds.find_all("General.Currencies.Currencies", name__startswith="E")) == 1
    assert repositories["Crm.Sales.SalesOrders"].model._default_manager.count() == 0


def test_a_read_changes_no_entity_of_its_dataset(ds: Dataset, world: World) -> None:
    order = new_order(ds, world)
    line = new_line(ds, world, order, Quantity=Decimal(2), UnitPrice=Decimal(3))
    product = new_product(ds, world)

    def state() -> list[Any]:
        return [
            (r.key, r.state, dict(r.values), dict(r.original_values), set(r.dirty), r.mutations, r.client_caused)
            for r in ds.records.values()
            if r.state != "Unchanged"
        ]

    before = state(), dict(ds.behaviour_values), dict(ds.memory), len(ds.deferred.copy().writes)
    model = repositories["Crm.Sales.SalesOrders"].model
    with ds.shown():
        assert model._default_manager.values_list("document_no", flat=True).get() == "0000000001"
    assert (state(), dict(ds.behaviour_values), dict(ds.memory), len(ds.deferred.copy().writes)) == before
    assert model._default_manager.count() == 0
    ds.commit()
    assert (order.document_no, line.line_amount, order.amount_to_pay) == ("0000000001", 6, 6)
    assert product.product_group_id == world.group


def test_each_read_shows_what_has_changed_since_the_last(ds: Dataset, world: World) -> None:
    model = repositories["General.Products.Products"].model._default_manager

    def shown() -> dict[str, Any]:
        with ds.shown():
            return dict(model.values_list("part_number", "product_group__code"))

    stored = ds.load("General.Products.Products", world.product)
    assert stored is not None
    first = new_product(ds, world, "A1")
    assert shown() == {"P1": "G1", "A1": "G1"}
    stored.part_number = "P2"
    new_product(ds, world, "A2")
    assert shown() == {"P2": "G1", "A1": "G1", "A2": "G1"}
    first.part_number = "A3"
    assert shown() == {"P2": "G1", "A3": "G1", "A2": "G1"}
    ds.delete(first)
    group = ds.load("General.Products.ProductGroups", world.group)
    assert group is not None
    group.code = "G9"
    assert shown() == {"P2": "G9", "A2": "G9"}
    group.active = False
    ds.create("General.Products.ProductGroups", {"Code": "B", "Name": {"EN": "b"}})
    new_product(ds, world, "A4", ProductGroup=None)
    assert shown() == {"P2": "G9", "A2": "G9", "A4": "B"}


def test_deleting_in_the_dataset_what_parents_own_asks_each_collection(ds: Dataset, world: World) -> None:
    product = ds.load("General.Products.Products", world.product)
    assert product is not None
    ds.delete(product)
    ds.commit()
    with pytest.raises(errors.NotFound):
        ds.open(repositories["General.Products.Products"], world.product)
