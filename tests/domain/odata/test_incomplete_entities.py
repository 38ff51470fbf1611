"""New entities of a Domain transaction that lack required values, as reads by their keys show them (spec 03, 3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.odata.test_writing import CURRENCIES, LINES, ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of


@pytest.fixture
def inside(api: Api) -> Api:
    """A transaction in the common model."""
    return api.begin(model="common")


@pytest.fixture
def order(inside: Api, world: World) -> str:
    """An order that lacks its customer, with two lines: one lacks its product, and what follows from that."""
    body = order_body(world, {"Quantity": 2, "UnitPrice": 3}, {"Quantity": 1})
    del body["Customer"], body["Lines"][1]["Product@odata.bind"]
    return str(inside.create(ORDERS, body)["@odata.id"])


def quantities(answer: dict[str, Any]) -> list[Any]:
    return [line["Quantity"]["Value"] for line in answer["Lines"]]


def test_expand_shows_the_parts(inside: Api, order: str, world: World) -> None:
    read = inside.read(f"{order}?$expand=Lines($expand=Product($select=PartNumber)),Customer,DocumentType")
    assert (read["Customer"], read["ToParty"]) == (None, None)
    assert read["DocumentType"]["@odata.id"] == f"Systems_Documents_DocumentTypes({world.document_type})"
    assert quantities(read) == [2, 1]
    first, second = read["Lines"]
    assert first["Product"]["@odata.id"] == f"{PRODUCTS}({world.product})"
    assert first["UnitPrice"]["Value"] == 3
    assert (second["Product"], second["UnitPrice"], second["ProductDescription"]) == (None, None, None)


def test_nested_options_hold(inside: Api, order: str) -> None:
    def lines(options: str) -> list[Any]:
        return quantities(inside.read(f"{order}?$expand=Lines({options})"))

    assert lines("$orderby=Quantity/Value") == [1, 2]
    assert lines("$orderby=Quantity/Value,Id desc;$top=1") == [1]
    assert lines("$filter=Quantity/Value gt 1") == [2]
    assert lines("$filter=Product eq null and UnitPrice eq null") == [1]
    assert lines("$filter=UnitPrice/Value eq 0") == []
    assert inside.read(f"{order}?$expand=Lines/$count")["Lines@odata.count"] == 2


@pytest.mark.parametrize("key", ["UnitPrice/Value", "UnitPrice/Value mul 2", "Product/PartNumber"])
def test_what_is_missing_sorts_as_null(inside: Api, order: str, key: str) -> None:
    """Before all values, and after them in descending order (OData URL Conventions, 5.1.4)."""
    for at in (f"{order}/Lines?$orderby={key}", f"{order}?$expand=Lines($orderby={key})"):
        for direction, expected in (("asc", [1, 2]), ("desc", [2, 1])):
            address = at.replace(key, f"{key} {direction}")
            read = inside.read(address.replace(" ", "%20"))
            lines = read["value"] if "value" in read else read["Lines"]
            assert [line["Quantity"]["Value"] for line in lines] == expected, address


def test_select_narrows(inside: Api, order: str) -> None:
    read = inside.read(f"{order}?$select=Customer,State,DisplayText")
    assert {name for name in read if not name.startswith("@")} == {"Customer", "State", "DisplayText"}
    assert (read["Customer"], read["State"]) == (None, "New")
    assert not any(0xE000 <= ord(letter) <= 0xF8FF for letter in read["DisplayText"] or "")


def test_navigation_answers(inside: Api, order: str, world: World) -> None:
    assert [line["Quantity"]["Value"] for line in inside.read(f"{order}/Lines")["value"]] == [2, 1]
    assert inside.get(f"{order}/Lines/$count").content == b"2"
    assert inside.get(f"{order}/Lines/$count?$filter=LineAmount eq null").content == b"1"
    assert len(inside.read(f"{order}/Lines/$ref")["value"]) == 2
    assert inside.read(f"{order}/Lines?$apply=aggregate($count as N)")["value"][0]["N"] == 2
    currency = f"{CURRENCIES}({world.currency})"
    assert inside.read(f"{order}/DocumentCurrency")["@odata.id"] == currency
    assert inside.read(f"{order}/DocumentCurrency/$ref")["@odata.id"] == currency
    assert inside.get(f"{order}/Customer").status_code == 204
    assert inside.read(f"{order}/State")["value"] == "New"
    first, second = (line["@odata.id"] for line in inside.read(f"{order}/Lines")["value"])
    assert inside.get(f"{second}/UnitPrice").status_code == 204
    assert inside.get(f"{second}/ProductDescription/EN/$value").status_code == 204
    assert inside.read(f"{first}/SalesOrder")["@odata.id"] == order
    answer = inside.post(f"{order}/Lines/$query", "$filter=Quantity/Value eq 1", Content_Type="text/plain")
    assert len(answer.json()["value"]) == 1


def test_the_answer_of_the_write_is_as_asked_for(inside: Api, world: World) -> None:
    made = inside.create(f"{ORDERS}?$select=State&$expand=Lines($select=Quantity)", order_body(world, {"Quantity": 5}))
    assert (made["State"], quantities(made), "DocumentDate" in made) == ("New", [5], False)
    changed = inside.request(
        "PATCH", f"{made['@odata.id']}?$select=DocumentNotes", {"DocumentNotes": "n"}, Prefer="return=representation"
    ).json()
    assert {name for name in changed if not name.startswith("@")} == {"DocumentNotes"}


def test_sets_leave_it_out(inside: Api, order: str) -> None:
    for address in (ORDERS, LINES, f"{ORDERS}?$expand=Lines", f"{LINES}?$filter=Product eq null"):
        assert inside.read(address)["value"] == [], address
    assert inside.get(f"{ORDERS}/$count").content == b"0"


def test_others_do_not_see_it(api: Api, order: str) -> None:
    for address in (order, f"{order}/Lines", f"{order}/Lines/$count"):
        assert api.get(address).status_code == 404


def test_a_new_part_of_a_stored_order_is_among_its_parts(api: Api, inside: Api, world: World) -> None:
    stored = api.create(ORDERS, order_body(world, {"Quantity": 7}))["@odata.id"]
    line = {"Product@odata.bind": f"{PRODUCTS}({world.product})", "Quantity": 8}
    inside.create(f"{stored}/Lines", line)
    assert quantities(inside.read(f"{stored}?$expand=Lines")) == [7, 8]
    assert inside.get(f"{stored}/Lines/$count").content == b"2"
    assert quantities(api.read(f"{stored}?$expand=Lines")) == [7]


def test_what_refers_to_it_by_key_shows_it(inside: Api) -> None:
    parent = inside.create("General_Products_ProductGroups", {"Code": "P"})["@odata.id"]
    child = inside.create("General_Products_ProductGroups", {"Code": "C", "ParentGroup@odata.bind": parent})
    read = inside.read(f"{child['@odata.id']}?$select=Code,Name&$expand=ParentGroup($select=Code,Name)")
    assert (read["Code"], read["Name"], read["ParentGroup"]["Code"], read["ParentGroup"]["Name"]) == (
        "C", None, "P", None,
    )  # fmt: skip
    assert inside.read(f"{child['@odata.id']}/ParentGroup")["Code"] == "P"


def test_it_is_followed_far(inside: Api, order: str) -> None:
    """Order → line → product → group → parent group, each of which lacks something, and back from the line."""
    parent = inside.create("General_Products_ProductGroups", {"Code": "P"})["@odata.id"]
    group = inside.create("General_Products_ProductGroups", {"Code": "C", "ParentGroup@odata.bind": parent})
    product = inside.create(PRODUCTS, {"PartNumber": "NEW", "ProductGroup@odata.bind": group["@odata.id"]})
    line = inside.create(f"{order}/Lines", {"Product@odata.bind": product["@odata.id"], "Quantity": 9})["@odata.id"]
    behind = "ProductGroup($select=Code;$expand=ParentGroup($select=Code))"
    read = inside.read(f"{order}?$expand=Lines($filter=Quantity/Value eq 9;$expand=Product($expand={behind}))")
    found = read["Lines"][0]["Product"]
    assert (found["PartNumber"], found["ProductGroup"]["Code"]) == ("NEW", "C")
    assert found["ProductGroup"]["ParentGroup"]["Code"] == "P"
    assert inside.read(f"{line}/Product/ProductGroup/ParentGroup")["Code"] == "P"
    assert quantities(inside.read(f"{line}?$expand=SalesOrder($expand=Lines)")["SalesOrder"]) == [2, 1, 9]


def test_many_that_lack_a_unique_value_stand_side_by_side(inside: Api) -> None:
    made = [inside.create(CURRENCIES, {"Name": f"c{number}"})["@odata.id"] for number in range(5)]
    assert [inside.read(path)["Name"] for path in made] == [f"c{number}" for number in range(5)]
    assert [inside.read(path)["CurrencySign"] for path in made] == [None] * 5


def test_a_stored_entity_that_loses_a_required_value_reads_so_and_is_refused(api: Api, world: World) -> None:
    inside = api.begin(model="common")
    path = f"{CURRENCIES}({world.currency})"
    assert inside.patch(path, {"Name": None}).status_code == 204
    assert inside.read(path)["Name"] is None
    assert [row["Name"] for row in inside.read(CURRENCIES)["value"]] == [None]
    assert inside.read(f"{CURRENCIES}?$filter=Name eq 'Euro'")["value"] == []
    assert api.read(path)["Name"] == "Euro"
    refused = inside.end()
    assert (refused.status_code, error_of(refused)["type"]) == (500, "RequiredAttributeMissing")


def test_what_is_given_at_last_completes_it(api: Api, inside: Api, order: str, world: World) -> None:
    assert inside.end().status_code == 500
    second = inside.read(f"{order}/Lines")["value"][1]["@odata.id"]
    assert inside.patch(second, {"Product@odata.bind": f"{PRODUCTS}({world.product})"}).status_code == 204
    assert inside.read(ORDERS)["value"] == []
    customer = {"Customer@odata.bind": f"Crm_Sales_Customers({world.customer})"}
    assert inside.patch(order, customer).status_code == 204
    assert [each["@odata.id"] for each in inside.read(ORDERS)["value"]] == [order]
    assert inside.end().status_code == 204
    assert [line["LineNo"] for line in api.read(f"{order}/Lines")["value"]] == [10, 20]
