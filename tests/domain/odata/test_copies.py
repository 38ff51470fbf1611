"""CreateCopy (spec 02, 2.4): what is taken over, and what a copy has of its own."""

from __future__ import annotations

import pytest

from foundation import cache_versions
from tests.domain.odata.test_batch import json_batch
from tests.domain.odata.test_writing import LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, id_of


def test_a_copy_of_an_order_has_its_lines_and_a_life_of_its_own(api: Api, world: World) -> None:
    order = api.create(ORDERS, order_body(world, {"Quantity": 3, "UnitPrice": 7}, DocumentNotes="a"))["@odata.id"]
    api.create(f"{order}/Comments", {"Comment": "on the first"})
    assert api.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204
    answer = api.post(f"{order}/CreateCopy")
    assert answer.status_code == 201, answer.content
    copy = answer.json()["@odata.id"]
    shown = api.read(
        f"{copy}?$select=DocumentNo,State,DocumentNotes,MasterDocument,TotalLineAmount&$expand=Lines,StateChanges,Comments"
    )
    assert (shown["DocumentNo"], shown["State"], shown["DocumentNotes"]) == ("0000000002", "New", "a")
    assert shown["MasterDocument"]["@odata.id"].partition("(")[2] == copy.partition("(")[2]
    assert [(line["Quantity"]["Value"], line["UnitPrice"]["Value"]) for line in shown["Lines"]] == [(3, 7)]
    assert (shown["TotalLineAmount"]["Value"], shown["StateChanges"], shown["Comments"]) == (21, [], [])
    assert api.get(f"{LINES}/$count").content == b"2"


def test_a_copy_of_a_product_owns_copies_and_shares_nothing(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    system = api.create("General_Products_CodingSystems", {"Name": {"EN": "EAN"}})
    api.create(f"{product}/Codes", {"CodingSystem": {"@odata.id": system["@odata.id"]}, "ProductCodeField": "590"})
    unit = {"PriceQuantityMeasurementUnit@odata.bind": f"General_Products_MeasurementUnits({world.unit})"}
    api.create(f"{product}/Prices", {"Price": 5, "PriceQuantity": 1, **unit})
    answer = api.post(f"{product}/CreateCopy", {})
    assert answer.status_code == 201, answer.content
    shown = api.read(f"{answer.json()['@odata.id']}?$select=Name,PartNumber&$expand=Codes,Prices")
    assert shown["Name"] == {"EN": "Chair", "BG": "Стол"}
    assert shown["PartNumber"] != "P1"
    # A code is of one product, and a price is an entity of its own.
    assert (shown["Codes"], shown["Prices"]) == ([], [])


def test_a_copy_is_answered_like_any_entity_that_is_created(api: Api, world: World) -> None:
    """OData Protocol 4.01, 11.5.5.1: with its address, and as the caller prefers."""
    product = f"{PRODUCTS}({world.product})"
    answer = api.post(f"{product}/CreateCopy", {})
    made = answer.json()
    assert answer["Location"].endswith(made["@odata.id"])
    assert answer["OData-EntityId"] == answer["Location"]
    assert made["Id"] == id_of(made)
    minimal = api.post(f"{product}/CreateCopy", {}, Prefer="return=minimal")
    assert (minimal.status_code, minimal.content, minimal["Preference-Applied"]) == (204, b"", "return=minimal")
    guid = minimal["OData-EntityId"].rpartition("(")[2].rstrip(")")
    assert minimal["Location"].endswith(f"{PRODUCTS}({guid})")
    assert guid not in (world.product, made["Id"])
    assert api.get(f"{PRODUCTS}/$count").content == b"3"


@pytest.mark.parametrize("is_transaction", [False, True])
def test_a_copy_of_a_document_with_pending_edits_has_the_amounts_of_these(
    api: Api, world: World, is_transaction: bool
) -> None:
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": 1, "UnitPrice": 7}))
    order, line = made["@odata.id"], made["Lines"][0]["@odata.id"]
    if is_transaction:
        inside = api.begin()
        assert inside.patch(line, {"Quantity": 10}).status_code == 204
        copy = inside.post(f"{order}/CreateCopy").json()["@odata.id"]
        assert inside.end().status_code == 204
    else:
        group = {"atomicityGroup": "g"}
        changed, copied = json_batch(
            api,
            {**group, "method": "PATCH", "url": line, "body": {"Quantity": 10}},
            {**group, "method": "POST", "url": f"{order}/CreateCopy"},
        )
        assert (changed["status"], copied["status"]) == (204, 201)
        copy = copied["body"]["@odata.id"]
    for each in (order, copy):
        shown = api.read(f"{each}?$select=TotalLineAmount&$expand=Lines($select=QuantityBase,LineAmount)")
        (copied_line,) = shown["Lines"]
        amounts = (copied_line["QuantityBase"], copied_line["LineAmount"], shown["TotalLineAmount"])
        assert [amount["Value"] for amount in amounts] == [10, 70, 70]


def test_a_copy_has_the_custom_properties(api: Api, world: World) -> None:
    """Spec 08, 8.1: they are attributes of every entity; a required one (10, 10.2) would refuse the copy without."""
    for name, values in (("Crm.Sales.SalesOrders", {"Required": True}), ("Crm.Sales.SalesOrderLines", {})):
        code = name.rpartition(".")[2]
        body = {"Code": code, "Name": {"EN": code}, "EntityName": name, "PropertyType": "Text", **values}
        api.create("Systems_Bpm_CustomProperties", body)
    cache_versions.expire()
    line = {"Quantity": 1, "UnitPrice": 7, "CustomProperty_SalesOrderLines": "of the line"}
    order = api.create(ORDERS, order_body(world, line, CustomProperty_SalesOrders="of the order"))["@odata.id"]
    copy = api.post(f"{order}/CreateCopy")
    assert copy.status_code == 201, copy.content
    path = f"{copy.json()['@odata.id']}?$select=CustomProperty_SalesOrders"
    shown = api.read(f"{path}&$expand=Lines($select=CustomProperty_SalesOrderLines)")
    assert shown["CustomProperty_SalesOrders"]["Value"] == "of the order"
    assert shown["Lines"][0]["CustomProperty_SalesOrderLines"]["Value"] == "of the line"
