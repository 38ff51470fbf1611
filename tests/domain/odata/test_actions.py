"""`@erpnet.action` and `@erpnet.findBy` on POST, PATCH and nested objects; types, order, amounts (spec 02, 2.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.odata.test_writing import CURRENCIES, GROUPS, LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of

FOUND: list[tuple[str, int, bytes]] = [
    ("create", 201, b"3"), ("update", 200, b"2"), ("merge", 200, b"2"), ("find", 200, b"2"), ("findOrNull", 200, b"2"),
    ("findOrCreate", 200, b"2"), ("findSingle", 200, b"2"), ("findSingleOrNull", 200, b"2"), ("delete", 204, b"1"),
]  # fmt: skip
ABSENT: list[tuple[str, int, bytes]] = [
    ("create", 201, b"2"), ("update", 500, b"1"), ("merge", 201, b"2"), ("find", 500, b"1"), ("findOrNull", 204, b"1"),
    ("findOrCreate", 201, b"2"), ("findSingle", 500, b"1"), ("findSingleOrNull", 204, b"1"), ("delete", 500, b"1"),
]  # fmt: skip


@pytest.mark.parametrize("action,status,groups", FOUND)
def test_each_action_on_post_where_the_entity_is_there(api: Api, action: str, status: int, groups: bytes) -> None:
    api.create(GROUPS, {"Code": "G2", "Name": {"EN": "Old"}, "ExternalId": "7"})
    code = "G3" if action == "create" else "G2"
    body = {"@erpnet.action": action, "@erpnet.findBy": {"ExternalId": "7"}, "ExternalId": "7", "Code": code,
            "Name": {"EN": "New"}}  # fmt: skip
    response = api.post(GROUPS, body)
    assert response.status_code == status, response.content
    assert api.get(f"{GROUPS}/$count").content == groups
    changed = action in ("update", "merge", "create")
    expected = b"1" if changed else b"0"
    assert api.get(f"{GROUPS}/$count?$filter=contains(Name,'New')").content == expected


@pytest.mark.parametrize("action,status,groups", ABSENT)
def test_each_action_on_post_where_nothing_is_there(api: Api, action: str, status: int, groups: bytes) -> None:
    response = api.post(GROUPS, {"@erpnet.action": action, "Code": "G2", "Name": {"EN": "New"}})
    assert response.status_code == status, response.content
    assert api.get(f"{GROUPS}/$count").content == groups


def _nested(world: World, group: dict[str, Any]) -> dict[str, Any]:
    return {"ProductGroup": group}


@pytest.mark.parametrize("action,status,groups", FOUND[1:-1])
def test_each_action_on_a_reference_of_patch(api: Api, world: World, action: str, status: int, groups: bytes) -> None:
    made = api.create(GROUPS, {"Code": "G2", "Name": {"EN": "Old"}})
    body = _nested(world, {"@erpnet.action": action, "Code": "G2", "Name": {"EN": "New"}})
    assert api.patch(f"{PRODUCTS}({world.product})", body).status_code == 204
    stored = api.read(f"{PRODUCTS}({world.product})?$expand=ProductGroup")
    assert stored["ProductGroup"]["@odata.id"] == made["@odata.id"]
    assert stored["ProductGroup"]["Name"]["EN"] == ("New" if action in ("update", "merge") else "Old")
    assert api.get(f"{GROUPS}/$count").content == groups


@pytest.mark.parametrize("action,there,absent", [
    ("create", 400, 201), ("update", 204, 404), ("merge", 204, 201), ("delete", 204, 404), ("find", 204, 404),
    ("findOrNull", 204, 204), ("findOrCreate", 204, 201), ("findSingle", 204, 404), ("findSingleOrNull", 204, 204),
])  # fmt: skip
def test_each_action_on_the_entity_of_patch(api: Api, action: str, there: int, absent: int) -> None:
    made = api.create(GROUPS, {"Code": "G2", "Name": {"EN": "Old"}})["@odata.id"]
    response = api.patch(made, {"@erpnet.action": action, "Notes": "new"})
    assert response.status_code == there, response.content
    if action == "delete":
        assert api.get(made).status_code == 404
    else:
        assert api.read(f"{made}?$select=Notes")["Notes"] == ("new" if action in ("update", "merge") else None)
    other = f"{GROUPS}(11111111-2222-3333-4444-555555555555)"
    response = api.patch(other, {"@erpnet.action": action, "Code": "G3", "Name": {"EN": "New"}})
    assert response.status_code == absent, response.content
    assert (api.get(other).status_code == 200) is (absent == 201)


@pytest.mark.parametrize("type_name,status", [
    ("#Erp.General_Contacts_Company", 204), ("Erp.General_Contacts_Party", 204), ("#Erp.General_Contacts_Person", 400),
    ("#Erp.General_Products_Product", 400), ("Erp.Nothing", 400),
])  # fmt: skip
def test_a_type_in_the_body_must_be_that_of_the_entity(api: Api, world: World, type_name: str, status: int) -> None:
    body = {"@odata.type": type_name, "ExternalSystem": "x"}
    assert api.patch(f"General_Contacts_Parties({world.party})", body).status_code == status
    nested = {"Party": {"@odata.id": f"General_Contacts_Parties({world.party})", **body}}
    assert api.patch(f"Crm_Sales_Customers({world.customer})", nested).status_code == status


@pytest.mark.parametrize("action,leads_to", [
    ("create", "G2"), ("merge", "G2"), ("findOrCreate", "G2"), ("findOrNull", None), ("findSingleOrNull", None),
])  # fmt: skip
def test_a_reference_to_what_is_not_there_yet(api: Api, world: World, action: str, leads_to: str | None) -> None:
    body = {"AssignedToUser": None, "ParentGroup": {"@erpnet.action": action, "Code": "G2", "Name": {"EN": "Above"}}}
    del body["AssignedToUser"]
    assert api.patch(f"{GROUPS}({world.group})", body).status_code == 204
    stored = api.read(f"{GROUPS}({world.group})?$expand=ParentGroup")
    found = stored["ParentGroup"]
    assert (found["Code"] if found else None) == leads_to


@pytest.mark.parametrize("action", ["update", "find", "findSingle", "delete"])
def test_a_reference_that_must_be_there_is_refused(api: Api, world: World, action: str) -> None:
    refused = api.patch(f"{PRODUCTS}({world.product})", _nested(world, {"@erpnet.action": action, "Code": "G2"}))
    assert (refused.status_code, error_of(refused)["type"]) == (500, "FindFailed")
    assert error_of(refused)["message"].startswith("ProductGroup: 0 entities of General_Products_ProductGroup match")


def test_nested_objects_are_found_when_only_search_properties_are_given_else_merged(api: Api, world: World) -> None:
    product = f"{PRODUCTS}({world.product})"
    refused = api.patch(product, {"ProductGroup": {"Code": "G2"}})
    assert error_of(refused)["type"] == "FindFailed"
    assert api.patch(product, {"ProductGroup": {"Code": "G2", "Name": {"EN": "x"}, "Notes": "n"}}).status_code == 204
    assert api.get(f"{GROUPS}/$count").content == b"2"


@pytest.mark.parametrize("body", [
    {"ExternalId": "7", "ExternalSystem": "shop"}, {"ExternalId": "7"}, {"Code": "G2"},
    {"Name": {"EN": "Tables"}}, {"Name": "Tables"},
])  # fmt: skip
def test_an_object_is_found_by_its_own_search_properties(api: Api, body: dict[str, Any]) -> None:
    made = api.create(GROUPS, {"Code": "G2", "Name": {"EN": "Tables"}, "ExternalId": "7", "ExternalSystem": "shop"})
    found = api.post(GROUPS, {"@erpnet.action": "find", **body})
    assert (found.status_code, found.json()["@odata.id"]) == (200, made["@odata.id"])


def test_find_by_id_and_a_wrong_find_by(api: Api, world: World) -> None:
    found = api.post(GROUPS, {"@erpnet.action": "find", "@erpnet.findBy": {"Id": world.group}})
    assert found.json()["@odata.id"] == f"{GROUPS}({world.group})"
    assert api.post(GROUPS, {"@erpnet.action": "find", "@erpnet.findBy": {"Mood": "good"}}).status_code == 400


def test_the_external_system_tells_apart(api: Api) -> None:
    for system in ("shop", "books"):
        api.create(GROUPS, {"Code": system, "Name": {"EN": system}, "ExternalId": "7", "ExternalSystem": system})
    found = api.post(GROUPS, {"@erpnet.action": "findSingle", "ExternalId": "7", "ExternalSystem": "books"})
    assert found.json()["Code"] == "books"
    ambiguous = api.post(GROUPS, {"@erpnet.action": "findSingle", "@erpnet.findBy": {"ExternalId": "7"}})
    assert error_of(ambiguous)["type"] == "FindFailed"


def test_the_type_picks_a_derived_entity(api: Api) -> None:
    parties = "General_Contacts_Parties"
    company = {"@odata.type": "#Erp.General_Contacts_Company", "Name": {"EN": "Derived Ltd"}}
    person = {"@odata.type": "Erp.General_Contacts_Person", "FirstName": {"EN": "Ann"}, "LastName": {"EN": "Bo"}}
    made = api.create(parties, company)
    assert made["@odata.id"].startswith("General_Contacts_Companies(")
    assert api.create(parties, person)["@odata.id"].startswith("General_Contacts_Persons(")
    refused = api.post(parties, {"PartyName": {"EN": "What am I?"}})
    assert (refused.status_code, error_of(refused)["type"]) == (400, "InvalidBody")
    wrong = api.post(parties, {"@odata.type": "#Erp.General_Products_Product"})
    assert wrong.status_code == 400


def test_a_nested_party_is_made_of_the_type_it_names(api: Api) -> None:
    party = {"@erpnet.action": "create", "@odata.type": "Erp.General_Contacts_Company", "Name": {"EN": "New"}}
    made = api.create("Crm_Sales_Customers?$expand=Party", {"Number": "C9", "Party": party})
    assert made["Party"]["PartyName"] == {"EN": "New"}


def test_properties_are_set_in_the_order_of_the_body(api: Api, world: World) -> None:
    """In the frontend model the product brings its unit price; what follows it in the body wins."""
    inside = api.begin(model="frontend")
    order = inside.create(ORDERS, order_body(world))["@odata.id"]
    product = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}
    after = inside.create(f"{order}/Lines", {**product, "ProductDescription": {"EN": "mine"}})
    before = inside.create(f"{order}/Lines", {"ProductDescription": {"EN": "mine"}, **product})
    assert after["ProductDescription"] == {"EN": "mine"}
    assert before["ProductDescription"] == {"EN": "Chair", "BG": "Стол"}


def test_a_unit_in_the_value_sets_the_sibling_reference(api: Api, world: World) -> None:
    boxes = {"Name": {"EN": "box"}, "Code": "box", "Multiplier": 12}
    stored = api.read(f"General_Products_MeasurementUnits({world.unit})")
    api.create("General_Products_MeasurementUnits", {**boxes, "MeasurementCategory": stored["MeasurementCategory"]})
    made = api.create(f"{ORDERS}?$expand=Lines", order_body(world, {"Quantity": {"Value": 2, "Unit": "box"}}))
    line = api.read(f"{made['Lines'][0]['@odata.id']}?$expand=QuantityUnit&$select=Quantity,QuantityBase")
    assert line["QuantityUnit"]["Code"] == "box"
    assert (line["Quantity"]["Value"], line["QuantityBase"]["Value"]) == (2, 24)
    refused = api.patch(made["Lines"][0]["@odata.id"], {"Quantity": {"Value": 1, "Unit": "mile"}})
    assert error_of(refused)["type"] == "FindFailed"
    odd = api.patch(made["Lines"][0]["@odata.id"], {"Quantity": {"Value": 1, "Colour": "red"}})
    assert (odd.status_code, error_of(odd)["target"]) == (400, "Quantity/Colour")


def test_collections_of_entities_of_their_own(api: Api, world: World) -> None:
    """Prices are roots; a product's Prices are those that refer to it."""
    price = {"Price": {"Value": 5, "Currency": "EUR"}, "PriceQuantity": 1}
    unit = {"PriceQuantityMeasurementUnit@odata.bind": f"General_Products_MeasurementUnits({world.unit})"}
    made = api.create(f"{PRODUCTS}({world.product})/Prices", {**price, **unit})
    assert made["Product"] == {"@odata.id": f"{PRODUCTS}({world.product})"}
    deep = {"Prices": [{"@odata.id": made["@odata.id"], "Price": 6}, {**price, **unit, "@erpnet.action": "create"}]}
    assert api.patch(f"{PRODUCTS}({world.product})", deep).status_code == 204
    shown = api.read(f"{PRODUCTS}({world.product})?$expand=Prices($orderby=Id)")["Prices"]
    assert [entry["Price"]["Value"] for entry in shown] == [6, 5]
    assert error_of(api.delete(f"{PRODUCTS}({world.product})"))["type"] == "ReferenceInUse"


def test_an_answer_that_cannot_be_made_writes_nothing(api: Api) -> None:
    refused = api.post(f"{CURRENCIES}?$select=Mood", {"CurrencySign": "USD", "Name": "Dollar"})
    assert refused.status_code == 400
    assert api.get(f"{CURRENCIES}/$count").content == b"1"


def test_the_same_order_has_the_same_totals_in_both_models(api: Api, world: World) -> None:
    line = {"Quantity": {"Value": 3, "Unit": "pcs"}, "UnitPrice": {"Value": 10.35, "Currency": "EUR"},
            "LineCustomDiscountPercent": 0.1}  # fmt: skip
    body = order_body(world, line, {"Quantity": 2, "UnitPrice": 7.5}, {})
    shown = "$select=TotalLineAmount,AmountToPay&$expand=Lines($select=LineAmount,QuantityBase,LineNo;$orderby=LineNo)"

    def plain(order: dict[str, Any]) -> dict[str, Any]:
        lines = [{key: entry[key] for key in ("LineAmount", "QuantityBase", "LineNo")} for entry in order["Lines"]]
        return {"Total": order["TotalLineAmount"], "ToPay": order["AmountToPay"], "Lines": lines}

    common = api.create(f"{ORDERS}?{shown}", body)
    inside = api.begin(model="frontend", trackChanges=True)
    made = inside.create(ORDERS, body)["@odata.id"]
    changes = inside.read("GetChanges()")
    told = {key for row in changes["insert"][LINES].values() for key in row}
    assert told >= {"LineAmount", "QuantityBase", "ProductDescription", "QuantityUnit"}
    assert "TotalLineAmount" in next(iter(changes["insert"][ORDERS].values()))
    assert inside.end().status_code == 204
    assert plain(api.read(f"{made}?{shown}")) == plain(common)
    assert common["TotalLineAmount"]["Value"] == 42.95
