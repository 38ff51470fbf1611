"""Addresses: blanks in options, any and all without arguments, $all of a container, casts in groupby."""

from __future__ import annotations

import pytest

from tests.rules.cast import World
from tests.support.api import Api, error_of

ORDERS = "Crm_Sales_SalesOrders"
PARTIES = "General_Contacts_Parties"
PRODUCTS = "General_Products_Products"


@pytest.mark.parametrize("blank", ["%20", "%09", "+", "%20%20"])
@pytest.mark.parametrize(
    "option", ["$filter={}true", "$filter=true{}", "$orderby={}PartNumber", "$select={}PartNumber", "$top={}1",
               "$count={}true", "$search={}Chair", "$expand={}ProductGroup", "$apply={}aggregate($count as C)"],
)  # fmt: skip
def test_options_may_begin_with_blanks(api: Api, world: World, blank: str, option: str) -> None:
    answer = api.get(f"{PRODUCTS}?{option.format(blank).replace(' ', '%20')}")
    assert answer.status_code == 200, answer.content
    assert len(answer.json()["value"]) == 1


@pytest.mark.parametrize("text", ["", "%20", "%20true%20true", "tr%20ue"])
def test_what_blanks_do_not_make_whole_is_refused_with_its_position(api: Api, text: str) -> None:
    refused = api.get(f"{PRODUCTS}?$filter={text}")
    assert refused.status_code == 400
    assert "$filter" in error_of(refused)["message"] or "true" in error_of(refused)["message"]


def test_any_without_arguments_asks_whether_there_are_members(api: Api, world: World) -> None:
    customer = {"Customer@odata.bind": f"Crm_Sales_Customers({world.customer})"}
    line = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}
    api.create(ORDERS, {**customer, "DocumentNotes": "empty"})
    api.create(ORDERS, {**customer, "DocumentNotes": "full", "Lines": [line]})
    expected = {
        "Lines/any()": ["full"],
        "not Lines/any()": ["empty"],
        "Lines/any( )": ["full"],
        "Lines/any(l:l/Product/Codes/any())": [],
        "Customer/SalesPerson ne null or Lines/any()": ["full"],
    }
    for condition, notes in expected.items():
        path = f"{ORDERS}?$filter={condition}&$select=DocumentNotes"
        assert [row["DocumentNotes"] for row in api.read(path)["value"]] == notes, condition


@pytest.mark.parametrize(
    "condition,status",
    [
        ("Lines/all()", 400), ("Customer/any()", 400), ("DocumentNo/any()", 400), ("Lines/any", 400), ("any()", 501),
        ("Nothing/any()", 400), ("Lines/any(", 400), ("Lines/any(true)", 400), ("Lines/Product/Codes/any()", 400),
    ],
)  # fmt: skip
def test_any_of_what_is_no_collection_is_refused(api: Api, condition: str, status: int) -> None:
    refused = api.get(f"{ORDERS}?$filter={condition}")
    assert refused.status_code == status, refused.content
    assert error_of(refused)["type"] != "InternalError"


@pytest.mark.parametrize("address", ["Model.Container/$all", "Erp.Container/$all", "$all", "Erp.Container/$all/Erp.X"])
def test_all_of_a_container_is_501_and_named(api: Api, address: str) -> None:
    refused = api.get(address)
    assert (refused.status_code, error_of(refused)["type"]) == (501, "NotSupported")
    assert "$all" in error_of(refused)["message"]


@pytest.mark.parametrize("address", ["Model.Container", "Erp.Container", "Model.Container/$each", "Erp.Container/$al"])
def test_other_addresses_of_a_container_are_400(api: Api, address: str) -> None:
    assert api.get(address).status_code == 400


@pytest.mark.parametrize(
    "query,named",
    [
        (f"{PARTIES}?$apply=groupby((Erp.General_Products_Product/PartNumber))", "Erp.General_Products_Product"),
        (f"{PARTIES}?$apply=groupby((Erp.Nothing/PartNumber))", "Erp.Nothing"),
        (f"{PARTIES}?$apply=groupby((Erp.General_Contacts_Person))", "Erp.General_Contacts_Person"),
        (f"{ORDERS}?$apply=groupby((Customer/Erp.General_Products_Product/PartNumber))", "Product"),
        (f"{ORDERS}?$apply=groupby((DocumentNo/Erp.Crm_Sales_SalesOrder))", "Erp.Crm_Sales_SalesOrder"),
        (f"{ORDERS}?$apply=groupby((rollup(Erp.General_Products_Product/PartNumber,DocumentNo)))", "Product"),
        (f"{ORDERS}?$apply=groupby((cast(DocumentDate,Edm.Guid) as X))", "cast"),
    ],
)
def test_an_invalid_cast_inside_groupby_is_refused_by_name(api: Api, query: str, named: str) -> None:
    refused = api.get(query.replace(" ", "%20"))
    assert refused.status_code == 400, refused.content
    assert named in error_of(refused)["message"]


def test_a_valid_cast_inside_groupby_is_not(api: Api, world: World) -> None:
    assert api.get(f"{PARTIES}?$apply=groupby((Erp.General_Contacts_Person/FirstName))").status_code == 200
    assert api.get(f"{ORDERS}?$apply=groupby((ToParty/Erp.General_Contacts_Person/FirstName))").status_code == 200
