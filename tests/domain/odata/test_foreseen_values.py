"""Reads inside a Domain transaction are as if it were committed: with what the commit will fill in (spec 03, 3.2)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from domain.dataset.tables.models import ChangeFeedEntry, NumberSequence, PendingChange
from tests.domain.odata.test_writing import CURRENCIES, LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World, fail, set_value, write_rule
from tests.support.api import Api, error_of, id_of

UNITS, STATE_CHANGES = "General_Products_MeasurementUnits", "General_Documents_DocumentStateChanges"
TOTALS = "TotalLineAmount,AmountToPay"


@pytest.fixture
def order(api: Api, world: World) -> str:
    """A stored order with one line of 2 × 3."""
    return str(api.create(ORDERS, order_body(world, {"Quantity": 2, "UnitPrice": 3}))["@odata.id"])


def new_product_body(world: World, **values: Any) -> dict[str, Any]:
    """A product as callers post it: group, type and base category are the platform's to fill in."""
    return {"Name": {"EN": "new"}, "MeasurementUnit@odata.bind": f"{UNITS}({world.unit})", **values}


def count(api: Api, path: str) -> int:
    return int(api.get(path).content)


def amounts(read: dict[str, Any]) -> list[Any]:
    return [read[name]["Value"] for name in TOTALS.split(",")]


def sequences() -> dict[str, int]:
    return dict(NumberSequence.objects.values_list("name", "last"))


def test_a_changed_line_shows_its_amount_and_its_order_the_total(api: Api, order: str) -> None:
    line = api.read(f"{order}/Lines")["value"][0]["@odata.id"]
    inside = api.begin()
    assert inside.patch(line, {"Quantity": 5}).status_code == 204
    assert inside.read(f"{line}?$select=LineAmount")["LineAmount"]["Value"] == 15
    assert inside.read(f"{line}/LineAmount/Value")["value"] == 15
    assert amounts(inside.read(f"{order}?$select={TOTALS}")) == [15, 15]
    assert amounts(inside.read(f"{line}?$expand=SalesOrder($select={TOTALS})")["SalesOrder"]) == [15, 15]
    of_order = quote(f"SalesOrder/Id eq {id_of({'@odata.id': order})}")
    assert count(inside, f"{LINES}/$count?$filter={of_order} and LineAmount/Value gt 14") == 1
    assert count(inside, f"{ORDERS}/$count?$filter=TotalLineAmount/Value eq 15") == 1
    aggregate = "$apply=aggregate(TotalLineAmount/Value with sum as S)"
    assert inside.read(f"{ORDERS}?{aggregate}")["value"][0]["S"] == 15
    assert amounts(api.read(f"{order}?$select={TOTALS}")) == [6, 6]
    assert inside.end().status_code == 204
    assert amounts(api.read(f"{order}?$select={TOTALS}")) == [15, 15]
    assert api.read(f"{line}?$select=LineAmount")["LineAmount"]["Value"] == 15


@pytest.mark.parametrize("by_key", [True, False])
def test_totals_follow_lines_that_come_go_and_move(api: Api, world: World, order: str, by_key: bool) -> None:
    other = api.create(ORDERS, order_body(world, {"Quantity": 1, "UnitPrice": 7}))["@odata.id"]
    line = api.read(f"{order}/Lines")["value"][0]["@odata.id"]

    def totals(of: Api) -> list[Any]:
        if by_key:
            return [of.read(f"{each}?$select={TOTALS}")["AmountToPay"]["Value"] for each in (order, other)]
        rows = of.read(f"{ORDERS}?$select=Id,AmountToPay")["value"]
        return [next(row["AmountToPay"]["Value"] for row in rows if row["Id"] in each) for each in (order, other)]

    inside = api.begin()
    more = {"Product@odata.bind": f"{PRODUCTS}({world.product})", "Quantity": 1, "UnitPrice": 10}
    inside.create(f"{order}/Lines", more)
    assert totals(inside) == [16, 7]
    assert inside.patch(line, {"SalesOrder@odata.bind": other}).status_code == 204
    assert totals(inside) == [10, 13]
    assert inside.delete(line).status_code == 204
    assert totals(inside) == [10, 7]
    assert totals(api) == [6, 7]
    assert inside.end().status_code == 204
    assert totals(api) == [10, 7]


def test_an_edited_plan_is_firm(api: Api, order: str) -> None:
    assert api.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    inside = api.begin()
    assert inside.patch(order, {"DocumentNotes": "n"}).status_code == 204
    assert inside.read(f"{order}?$select=State")["State"] == "FirmPlanned"
    assert count(inside, f"{ORDERS}/$count?$filter=State eq 'FirmPlanned'") == 1
    assert [each["NewState"] for each in inside.read(f"{order}/StateChanges")["value"]] == ["Planned", "FirmPlanned"]
    assert api.read(f"{order}?$select=State")["State"] == "Planned"
    assert inside.end().status_code == 204
    assert [each["NewState"] for each in api.read(f"{order}/StateChanges")["value"]] == ["Planned", "FirmPlanned"]


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_a_new_order_is_listed_with_what_the_commit_gives_it(api: Api, world: World, model: str) -> None:
    inside = api.begin(model=model)
    made = inside.create(ORDERS, order_body(world, {"Quantity": 2, "UnitPrice": 3}, {"Quantity": 1, "UnitPrice": 4}))
    shown = "DocumentNo,DocumentDate,State,EntityName,ToParty,DocumentCurrency,EnterpriseCompany,TotalLineAmount"
    options = f"$select={shown}&$expand=Lines($select=LineNo,LineAmount,ProductDescription,QuantityBase)"
    by_key = inside.read(f"{made['@odata.id']}?{options}")
    (listed,) = inside.read(f"{ORDERS}?{options}")["value"]
    (found,) = inside.read(f"{ORDERS}?{options}&$filter=DocumentNo eq '0000000001'")["value"]
    assert (listed["DocumentNo"], listed["TotalLineAmount"]["Value"]) == ("0000000001", 10)
    assert [line["LineNo"] for line in listed["Lines"]] == [10, 20]
    assert count(inside, f"{ORDERS}/$count?$search=0000000001") == 1
    assert count(inside, f"{LINES}/$count?$filter=SalesOrder/DocumentNo eq '0000000001'") == 2
    assert count(api, f"{ORDERS}/$count") == 0
    assert inside.end().status_code == 204
    stored = api.read(f"{made['@odata.id']}?{options}")
    assert [without_context(each) for each in (by_key, listed, found)] == [without_context(stored)] * 3


def without_context(read: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in read.items() if not name.startswith("@")}


def test_a_new_product_is_found_by_every_kind_of_query(api: Api, world: World) -> None:
    inside = api.begin()
    inside.create(PRODUCTS, new_product_body(world, PartNumber="TR1"))
    found = quote("PartNumber eq 'TR1'")
    assert count(inside, f"{PRODUCTS}/$count?$filter={found}") == 1
    assert count(inside, f"{PRODUCTS}/$count?$search=TR1") == 1
    assert count(inside, f"{PRODUCTS}/$count?$filter=ProductGroup/Id eq {world.group} and {found}") == 1
    assert inside.read(f"{PRODUCTS}?$apply=filter({found})/aggregate($count as C)")["value"][0]["C"] == 1
    assert count(api, f"{PRODUCTS}/$count?$filter={found}") == 0
    # So a second one with its number is found, too.
    merged = inside.post(
        PRODUCTS, {"@erpnet.action": "merge", "@erpnet.findBy": {"PartNumber": "TR1"}, "PartNumber": "TR1"}
    )
    assert merged.status_code in (200, 201, 204), merged.content
    assert count(inside, f"{PRODUCTS}/$count?$filter={found}") == 1
    assert inside.end().status_code == 204
    assert count(api, f"{PRODUCTS}/$count?$filter={found}") == 1


def test_what_only_the_caller_can_give_still_keeps_it_out(api: Api, world: World) -> None:
    inside = api.begin()
    inside.create(PRODUCTS, {"PartNumber": "TR1", "Name": {"EN": "x"}})
    assert count(inside, f"{PRODUCTS}/$count") == 1
    assert error_of(inside.end())["type"] == "RequiredAttributeMissing"


def test_a_new_line_of_a_new_product_is_filled_from_what_fills_the_product(api: Api, world: World) -> None:
    group = api.create("General_Products_ProductGroups", {"Code": "A", "Name": {"EN": "a"}, "IsDefault": True})
    assert (
        api.patch(group["@odata.id"], {"DefaultMeasurementUnit@odata.bind": f"{UNITS}({world.unit})"}).status_code
        == 204
    )
    inside = api.begin()
    product = inside.create(PRODUCTS, {"Name": {"EN": "x"}, "StandardPricePerLot": 8})["@odata.id"]
    body = order_body(world, {"Quantity": 2})
    body["Lines"][0]["Product@odata.bind"] = product
    order = inside.create(ORDERS, body)["@odata.id"]
    (line,) = inside.read(f"{LINES}?$expand=Product($select=PartNumber)")["value"]
    assert (id_of(line["QuantityUnit"]), line["Product"]["PartNumber"]) == (world.unit, "A-000001")
    assert inside.end().status_code == 204
    (stored,) = api.read(f"{order}/Lines?$expand=Product($select=PartNumber)")["value"]
    assert stored == line


def test_numbers_that_reads_show_are_not_taken(api: Api, world: World) -> None:
    inside, later = api.begin(), api.begin()
    mine = inside.create(ORDERS, order_body(world, {"Quantity": 1}))["@odata.id"]
    theirs = later.create(ORDERS, order_body(world, {"Quantity": 1}))["@odata.id"]
    before = sequences()
    for caller, path in ((inside, mine), (later, theirs), (inside, mine)):
        assert caller.read(f"{path}?$select=DocumentNo")["DocumentNo"] == "0000000001"
        assert [each["DocumentNo"] for each in caller.read(f"{ORDERS}?$select=DocumentNo")["value"]] == ["0000000001"]
    assert sequences() == before
    assert later.end().status_code == 204
    assert inside.read(f"{mine}?$select=DocumentNo")["DocumentNo"] == "0000000002"
    assert inside.end(commit=False).status_code == 204
    third = api.create(ORDERS, order_body(world, {"Quantity": 1}))
    assert (api.read(theirs)["DocumentNo"], third["DocumentNo"]) == ("0000000001", "0000000002")


def test_a_read_stores_and_raises_nothing(api: Api, world: World, order: str) -> None:
    write_rule(world, "Crm.Sales.SalesOrders", ["COMMIT"], actions=[set_value("DocumentNotes", "by the commit")])
    assert api.post(f"{order}/ChangeState", {"newState": "Planned"}).status_code == 204
    write_rule(world, "Crm.Sales.SalesOrders", [("ATTRIBUTECHANGED", "DocumentNo")], actions=[fail("Numbered.")])
    inside = api.begin(trackChanges=True, model="frontend")
    made = inside.create(ORDERS, order_body(world, {"Quantity": 1}))["@odata.id"]
    assert inside.patch(order, {"DocumentDate": "2026-01-01"}).status_code == 204
    inside.get("GetChanges()")
    before = list(PendingChange.objects.order_by("pk").values())
    fed = ChangeFeedEntry.objects.count()
    for path in (made, ORDERS, LINES, f"{order}?$expand=Lines", f"{ORDERS}/$count?$filter=DocumentNo ne null"):
        assert inside.get(path).status_code == 200
    assert inside.read(f"{made}?$select=DocumentNotes")["DocumentNotes"] is None
    assert list(PendingChange.objects.order_by("pk").values()) == before
    assert (ChangeFeedEntry.objects.count(), inside.get("GetChanges()").json()) == (fed, {})
    assert inside.read(f"{order}?$select=State")["State"] == "FirmPlanned"
    assert error_of(inside.end())["message"] == "Numbered."
    assert inside.read(f"{order}?$select=State")["State"] == "FirmPlanned"


def test_what_a_commit_would_refuse_does_not_fail_a_read(api: Api, world: World, order: str) -> None:
    line = api.read(f"{order}/Lines")["value"][0]["@odata.id"]
    inside = api.begin()
    # Their product has no column.
    assert inside.patch(line, {"Quantity": 999_999_999, "UnitPrice": 999_999_999}).status_code == 204
    read = inside.read(f"{line}?$select=Quantity,LineAmount")
    assert (read["Quantity"]["Value"], read["LineAmount"]["Value"]) == (999_999_999, 6)
    assert inside.read(f"{order}?$select={TOTALS}")["AmountToPay"]["Value"] is not None
    assert inside.end().status_code == 500
    for group in api.read("General_Products_ProductGroups")["value"]:
        assert inside.patch(group["@odata.id"], {"Active": False}).status_code == 204
    inside.create(PRODUCTS, new_product_body(world, PartNumber="TR1"))
    assert count(inside, f"{PRODUCTS}/$count?$filter=PartNumber eq 'TR1'") == 0


def test_a_script_finds_what_it_has_created(api: Api, world: World) -> None:
    script = f"""
        const products = Domain.General.Products.ProductsRepository;
        const unit = Domain.General.Products.MeasurementUnitsRepository.getById('{world.unit}');
        for (const code of ['S1', 'S2', 'S1', 'S2', 'S3'])
            if (products.query({{PartNumber: code}}).length === 0)
                products.createNew({{PartNumber: code, Name: {{EN: code}}, MeasurementUnit: unit}});
        products.createNew({{Name: {{EN: 'numbered'}}, MeasurementUnit: unit}});
        products.query({{PartNumber: 'S1'}})[0].PartNumber = 'S4';
        console.log(products.query({{}}, {{orderBy: 'PartNumber'}}).map(each => each.PartNumber || '?').join());
        console.log(products.query({{PartNumber: 'S1'}}).length, products.query({{PartNumber: 'G1-000001'}}).length);
    """
    inside = api.begin()
    answer = inside.post("ExecuteScript", script, Content_Type="text/plain").json()
    numbers = "P1,S2,S3,S4"
    assert sorted(answer["console"].partition("\n")[0].split(",")) == sorted([*numbers.split(","), "?"])
    assert answer["console"].endswith("0 1")
    assert count(inside, f"{PRODUCTS}/$count") == 5
    assert count(api, f"{PRODUCTS}/$count") == 1


def test_a_script_in_a_transaction_finds_by_calculated_values(api: Api, order: str) -> None:
    line = api.read(f"{order}/Lines")["value"][0]["@odata.id"]
    inside = api.begin()
    assert inside.patch(line, {"Quantity": 5}).status_code == 204
    script = """
        const [order] = Domain.Crm.Sales.SalesOrdersRepository.query({}, {filter: 'TotalLineAmount/Value eq 15'});
        const [line] = order.Lines;
        console.log(line.LineAmount.Value, order.TotalLineAmount.Value, order.ObjectState);
        line.Quantity = 6;
        console.log(line.Quantity.Value, line.LineAmount.Value);
        Transaction.commit();
        console.log(line.LineAmount.Value, order.TotalLineAmount.Value);
    """
    console = inside.post("ExecuteScript", script, Content_Type="text/plain").json()["console"].split("\n")
    assert console == ["15 15 Unchanged", "6 6", "18 18"]


def test_a_script_in_a_transaction_reads_what_the_commit_will_give(api: Api, world: World) -> None:
    inside = api.begin()
    for _ in range(2):
        inside.create(ORDERS, order_body(world, {"Quantity": 2, "UnitPrice": 3}))
    script = """
        for (const order of Domain.Crm.Sales.SalesOrdersRepository.query({}, {orderBy: 'Id'})) {
            const [line] = order.Lines;
            console.log(order.DocumentNo, order.DocumentCurrency.CurrencySign, `${line.LineAmount}`, line.LineNo);
        }
    """
    before = list(PendingChange.objects.order_by("pk").values()), sequences()
    console = inside.post("ExecuteScript", script, Content_Type="text/plain").json()["console"]
    assert (list(PendingChange.objects.order_by("pk").values()), sequences()) == before
    assert inside.end().status_code == 204
    assert api.post("ExecuteScript", script, Content_Type="text/plain").json()["console"] == console
    assert [line.split()[0] for line in console.split("\n")] == ["0000000001", "0000000002"]


def test_a_read_by_key_fills_in_its_own_aggregate_only(api: Api, world: World) -> None:
    def statements(pending: int) -> int:
        inside = api.begin()
        made = [inside.create(ORDERS, order_body(world, {"Quantity": 1}))["@odata.id"] for _ in range(pending)]
        with CaptureQueriesContext(connection) as captured:
            assert inside.read(f"{made[-1]}?$expand=Lines")["DocumentNo"]
        assert inside.end(commit=False).status_code == 204
        return len(captured)

    statements(2)
    assert statements(9) <= statements(2) + 1


def test_what_a_read_does_not_touch_is_not_filled_in(api: Api, world: World) -> None:
    def written() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            assert len(inside.read(CURRENCIES)["value"]) == 1
        return [each["sql"] for each in captured if "INSERT" in each["sql"]]

    inside = api.begin()
    for _ in range(3):
        inside.create(ORDERS, order_body(world, {"Quantity": 1}))
    assert written() == []


def test_a_read_shows_edits_after_an_operation_as_the_commit_stores_them(api: Api, order: str) -> None:
    """The operation has filled in amounts, which follow later edits in reads, too."""
    line = api.read(f"{order}/Lines")["value"][0]["@odata.id"]
    inside = api.begin()
    assert inside.patch(line, {"Quantity": 3}).status_code == 204
    assert inside.post(f"{order}/ChangeState", {"newState": "FirmPlanned"}).status_code == 204
    assert inside.patch(line, {"Quantity": 5}).status_code == 204
    assert inside.read(f"{line}?$select=LineAmount")["LineAmount"]["Value"] == 15
    assert amounts(inside.read(f"{order}?$select={TOTALS}")) == [15, 15]
    assert count(inside, f"{ORDERS}/$count?$filter=TotalLineAmount/Value eq 15") == 1
    assert inside.end().status_code == 204
    assert amounts(api.read(f"{order}?$select={TOTALS}")) == [15, 15]
