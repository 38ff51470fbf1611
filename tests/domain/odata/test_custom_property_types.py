"""Custom properties of each type: written, read, filtered, ordered, aggregated, required (spec 10, 10.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest

from tests.domain.odata.test_custom_properties_end_to_end import DEFINITIONS, define, look_again
from tests.domain.odata.test_writing import ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api, error_of, id_of

__all__ = ["look_again"]

Values = Mapping[str, Any]


def new_product(api: Api, world: World, **values: Any) -> str:
    """The path of a product like the cast's."""
    source = api.read(f"{PRODUCTS}({world.product})?$select=ProductGroup,MeasurementUnit")
    body = {
        "Name": {"EN": "Bolt"},
        "ProductGroup@odata.bind": source["ProductGroup"]["@odata.id"],
        "MeasurementUnit@odata.bind": source["MeasurementUnit"]["@odata.id"],
    }
    return f"{PRODUCTS}({id_of(api.create(PRODUCTS, body | values))})"


def value_of(api: Api, path: str, name: str) -> Any:
    return api.read(f"{path}?$select={quote(name)}")[name]


def found(api: Api, condition: str, name: str = "CustomProperty_p") -> list[str]:
    """The property's values of the products that a filter finds, in ascending order."""
    rows = api.read(f"{PRODUCTS}?$filter={quote(condition)}&$orderby={name}&$select={name}")["value"]
    return [row[name]["Value"] for row in rows]


@pytest.mark.parametrize(
    "kind, given, stored, refused",
    [
        ("DateTime", "2024-02-29T12:30:00+02:00", "2024-02-29T10:30:00Z", ["2024-02-30T00:00:00Z", "noon", 5, True]),
        ("DateTime", "2024-02-29T10:30:00.25", "2024-02-29T10:30:00.250000Z", []),
        ("Boolean", True, "true", [1, "yes", 0.5, [True]]),
        ("Boolean", "False", "false", []),
        ("Picture", "R0lGODlh_-8", "R0lGODlh/+8=", ["not base64!", "/+8=", 5, True]),
    ],
)
def test_a_value_is_stored_in_one_form(
    api: Api, world: World, kind: str, given: Any, stored: str, refused: list[Any]
) -> None:
    define(api, "p", PropertyType=kind)
    path = f"{PRODUCTS}({world.product})"
    assert api.patch(path, {"CustomProperty_p": given}).status_code == 204
    assert value_of(api, path, "CustomProperty_p")["Value"] == stored
    for wrong in refused:
        answer = api.patch(path, {"CustomProperty_p": wrong})
        assert (answer.status_code, error_of(answer)["target"]) == (400, "CustomProperty_p"), wrong


@pytest.mark.parametrize(
    "kind, values, condition, expected",
    [
        ("Number", ["10", "9", "-1", "2.5"], "CustomProperty_p ge 2.5", ["2.5", "9", "10"]),
        ("Number", ["10", "9", "-1"], "CustomProperty_p gt '8'", ["9", "10"]),
        ("Number", ["10", "9"], "CustomProperty_p add 1 eq 11", ["10"]),
        ("Number", ["10", "9"], "CustomProperty_p in (9,11)", ["9"]),
        ("Date", ["2024-02-29", "1999-12-31"], "CustomProperty_p lt 2024-02-29", ["1999-12-31"]),
        ("Date", ["2024-02-29", "1999-12-31"], "year(CustomProperty_p) eq 2024", ["2024-02-29"]),
        ("DateTime", ["2024-02-29T10:30:00Z", "2024-02-29T10:30:00.5Z"],
         "CustomProperty_p gt 2024-02-29T12:30:00%2B02:00".replace("%2B", "+"), ["2024-02-29T10:30:00.500000Z"]),
        ("DateTime", ["2024-02-29T10:30:00Z", "2023-01-01T00:00:00Z"], "CustomProperty_p ge 2024-01-01",
         ["2024-02-29T10:30:00Z"]),
        ("DateTime", ["2024-02-29T10:30:00Z", "2023-01-01T00:00:00Z"], "month(CustomProperty_p) eq 2",
         ["2024-02-29T10:30:00Z"]),
        ("Boolean", [True, False], "CustomProperty_p eq true", ["true"]),
        ("Boolean", [True, False], "CustomProperty_p ne true and CustomProperty_p ne null", ["false"]),
        ("Text", ["b", "a", "B"], "CustomProperty_p ge 'a'", ["a", "b"]),
    ],
)  # fmt: skip
def test_values_compare_and_sort_by_their_type(
    api: Api, world: World, kind: str, values: list[Any], condition: str, expected: list[str]
) -> None:
    define(api, "p", PropertyType=kind)
    for value in values:
        new_product(api, world, CustomProperty_p=value)
    assert found(api, condition) == expected


def test_numbers_are_totalled_and_days_are_grouped(api: Api, world: World) -> None:
    define(api, "weight", PropertyType="Number")
    define(api, "fresh", PropertyType="Boolean")
    for weight, fresh in (("0.1", True), ("0.2", True), ("5", False)):
        new_product(api, world, CustomProperty_weight=weight, CustomProperty_fresh=fresh)
    total = "aggregate(CustomProperty_weight with sum as Total,CustomProperty_weight with max as Most)"
    rows = api.read(f"{PRODUCTS}?$apply=groupby((CustomProperty_fresh),{total})")["value"]
    shown = {json.dumps(row["CustomProperty_fresh"]): (row["Total"], row["Most"]) for row in rows}
    assert shown == {"true": (0.3, 0.2), "false": (5, 5), "null": (None, None)}


def test_a_reference_is_given_by_code_id_or_path(api: Api, world: World) -> None:
    define(api, "like", PropertyType="Reference", AllowedValuesEntityName="General.Products.Products")
    other = new_product(api, world, PartNumber="OTHER")
    key = other.partition("(")[2][:-1]
    product = f"{PRODUCTS}({world.product})"
    for given in ("OTHER", {"ValueId": key}, {"Value": "?", "ValueId": key}, f"{PRODUCTS}({key})"):
        assert api.patch(product, {"CustomProperty_like": given}).status_code == 204, given
        stored = value_of(api, product, "CustomProperty_like")
        assert (stored["Value"], stored["ValueId"], stored["Description"]) == ("OTHER", key, {"EN": "Bolt"})
        for condition in (f"CustomProperty_like eq {key}", "CustomProperty_like eq 'OTHER'",
                          f"CustomProperty_like/ValueId eq '{key}'"):  # fmt: skip
            assert found(api, condition, "CustomProperty_like") == ["OTHER"], condition
        assert api.patch(product, {"CustomProperty_like": None}).status_code == 204
    for wrong in ("NONE", {"ValueId": world.customer}, f"Crm_Customers({key})"):
        answer = api.patch(product, {"CustomProperty_like": wrong})
        assert (answer.status_code, error_of(answer)["target"]) == (500, "CustomProperty_like"), wrong


def test_a_property_is_one_of_derived_entities_too(api: Api, world: World) -> None:
    define(api, "vip", PropertyType="Boolean", EntityName="General.Contacts.Parties")
    person = api.create(
        "General_Contacts_Persons", {"FirstName": {"EN": "Ada"}, "LastName": {"EN": "L"}, "CustomProperty_vip": True}
    )
    path = f"General_Contacts_Persons({id_of(person)})"
    assert value_of(api, path, "CustomProperty_vip")["Value"] == "true"
    assert api.get("General_Contacts_Persons/$count?$filter=CustomProperty_vip eq true").content == b"1"
    assert api.get("General_Contacts_Parties/$count?$filter=CustomProperty_vip eq true").content == b"1"
    metadata = api.get("$metadata").content.decode()
    assert metadata.count('Name="CustomProperty_vip"') == 1, "declared once, inherited by the others"


def test_new_entities_have_the_default(api: Api, world: World) -> None:
    define(api, "p", PropertyType="Number", DefaultValue="5")
    define(api, "like", PropertyType="Reference", AllowedValuesEntityName="General.Products.Products",
           DefaultValue="FIRST")  # fmt: skip
    first = new_product(api, world, PartNumber="FIRST")
    assert value_of(api, first, "CustomProperty_p")["Value"] == "5"
    assert value_of(api, first, "CustomProperty_like") is None, "there was none yet"
    second = new_product(api, world, CustomProperty_p=None)
    assert value_of(api, second, "CustomProperty_p") is None
    assert value_of(api, second, "CustomProperty_like")["Value"] == "FIRST"
    assert value_of(api, f"{PRODUCTS}({world.product})", "CustomProperty_p") is None, "there was none when it was made"


def test_a_required_one_is_asked_for(api: Api, world: World) -> None:
    define(api, "p", Required=True)
    source = f"{PRODUCTS}({world.product})"
    refused = api.patch(source, {"Active": False})
    assert (refused.status_code, error_of(refused)["target"]) == (500, "CustomProperty_p")
    assert "CustomProperty_p" in error_of(refused)["message"]
    assert api.patch(source, {"Active": False, "CustomProperty_p": "x"}).status_code == 204
    for blank in (None, "", " "):
        assert error_of(api.patch(source, {"CustomProperty_p": blank}))["target"] == "CustomProperty_p"


def test_a_document_needs_it_from_a_state_on(api: Api, world: World) -> None:
    define(api, "approver", Required=True, RequiredFromState="Released", EntityName="Crm.Sales.SalesOrders")
    order = f"{ORDERS}({id_of(api.create(ORDERS, order_body(world, {'Quantity': 1, 'UnitPrice': 1})))})"
    assert api.post(f"{order}/ChangeState", {"newState": "FirmPlanned"}).status_code == 204
    refused = api.post(f"{order}/ChangeState", {"newState": "Released"})
    assert (refused.status_code, error_of(refused)["target"]) == (500, "CustomProperty_approver")
    assert api.patch(order, {"CustomProperty_approver": "Ada"}).status_code == 204
    assert api.post(f"{order}/ChangeState", {"newState": "Released"}).status_code == 204


def test_texts_have_their_length(api: Api, world: World) -> None:
    define(api, "p", MaskLength=3)
    path = f"{PRODUCTS}({world.product})"
    assert api.patch(path, {"CustomProperty_p": "abc"}).status_code == 204
    refused = error_of(api.patch(path, {"CustomProperty_p": "abcd"}))
    assert (refused["target"], "3" in refused["message"]) == ("CustomProperty_p", True)


def test_properties_may_share_a_list_of_values(api: Api, world: World) -> None:
    define(api, "size", "S", "M")
    (shared,) = api.read(f"{DEFINITIONS}?$filter=Code eq 'size'")["value"]
    define(api, "p", LimitToAllowedValues=True, **{"AllowedValuesProperty@odata.bind": shared["@odata.id"]})
    path = f"{PRODUCTS}({world.product})"
    assert api.patch(path, {"CustomProperty_p": "M"}).status_code == 204
    assert error_of(api.patch(path, {"CustomProperty_p": "L"}))["target"] == "CustomProperty_p"


@pytest.mark.parametrize(
    "values, target",
    [
        ({"PropertyType": "Reference"}, "AllowedValuesEntityName"),
        ({"PropertyType": "Text", "Unit": True}, "Unit"),
        ({"PropertyType": "Number", "Unit": True, "Currency": True}, "Currency"),
        ({"PropertyType": "Number", "MaskLength": 5}, "MaskLength"),
        ({"PropertyType": "Text", "MaskLength": 0}, "MaskLength"),
        ({"PropertyType": "Picture", "IsIndexed": True}, "IsIndexed"),
        ({"Code": 'a "b"', "IsIndexed": True}, "IsIndexed"),
        ({"PropertyType": "Picture", "DefaultValue": "AA=="}, "DefaultValue"),
        ({"PropertyType": "Number", "DefaultValue": "five"}, "DefaultValue"),
        ({"PropertyType": "Boolean", "DefaultValue": "yes"}, "DefaultValue"),
        ({"PropertyType": "Date", "AllowedValues": [{"PropertyAllowedValueField": "soon"}]}, "AllowedValues"),
        ({"RequiredFromState": "Released", "Required": True}, "RequiredFromState"),
        ({"RequiredFromState": "Released", "EntityName": "Crm.Sales.SalesOrders"}, "RequiredFromState"),
    ],
    ids=lambda each: each if isinstance(each, str) else "-".join(each),
)
def test_what_does_not_fit_is_said_when_it_is_saved(api: Api, world: World, values: Values, target: str) -> None:
    body: dict[str, Any] = {"Code": "p", "Name": {"EN": "p"}, "EntityName": "General.Products.Products", **values}
    if body.pop("Unit", False):
        unit = api.read("General_Products_MeasurementUnits?$top=1")["value"][0]["@odata.id"]
        body["Unit@odata.bind"] = unit
    if body.pop("Currency", False):
        body["Currency@odata.bind"] = api.read("General_Currencies_Currencies?$top=1")["value"][0]["@odata.id"]
    refused = api.post(DEFINITIONS, body)
    assert refused.status_code in (400, 500), refused.content
    assert error_of(refused)["target"] == target, error_of(refused)


def test_a_type_stays_while_there_are_values(api: Api, world: World) -> None:
    define(api, "p")
    (definition,) = api.read(f"{DEFINITIONS}?$filter=Code eq 'p'")["value"]
    path = f"{PRODUCTS}({world.product})"
    assert api.patch(definition["@odata.id"], {"PropertyType": "Number"}).status_code == 204
    assert api.patch(path, {"CustomProperty_p": 5}).status_code == 204
    assert error_of(api.patch(definition["@odata.id"], {"PropertyType": "Date"}))["target"] == "PropertyType"
    assert error_of(api.patch(definition["@odata.id"], {"Code": "q"}))["target"] == "Code"
    assert api.patch(path, {"CustomProperty_p": None}).status_code == 204
    assert api.patch(definition["@odata.id"], {"PropertyType": "Date"}).status_code == 204


def test_documents_of_the_model_tell_the_type(api: Api, world: World) -> None:
    unit = api.read("General_Products_MeasurementUnits?$top=1&$select=Code")["value"][0]
    define(api, "p", PropertyType="Number", DefaultValue="1", **{"Unit@odata.bind": unit["@odata.id"]},
           Hint={"EN": "How heavy"})  # fmt: skip
    metadata = api.get("$metadata").content.decode()
    assert 'Term="Erp.PropertyType" String="Number"' in metadata
    assert f'Term="Erp.Unit" String="{unit["Code"]}"' in metadata
    model = json.loads(api.client.get("/api/domain/currentmodel/General_Products_Products",
                                      headers={"Authorization": f"Bearer {api.token}"}).content)  # fmt: skip
    (shown,) = [each for each in model["Attributes"] if each["Name"] == "CustomProperty_p"]
    assert shown["LocalizedDescription"] == "How heavy"
    assert (shown["BaseInfo"]["UnitExpression"], shown["BaseInfo"]["DefaultValueType"]) == (unit["Code"], "Constant")
    assert "GreaterThanOrLessThan" in shown["BaseInfo"]["SupportedFilters"]
