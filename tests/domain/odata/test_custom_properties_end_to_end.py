"""Custom properties from their definition by API to their use (spec 08, 8.2)."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import quote

import pytest

from domain.entities.systems_custom_properties import CustomProperty
from domain.model import custom_properties
from foundation import cache_versions
from tests.domain.odata.test_live_transactions import Caller
from tests.domain.odata.test_writing import PRODUCTS
from tests.rules.cast import World
from tests.support.api import Api, error_of
from tests.support.platform import LivePlatform

DEFINITIONS = "Systems_Bpm_CustomProperties"


@pytest.fixture(autouse=True)
def look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change signals reach the process when a transaction commits; the test's own never does."""
    monkeypatch.setattr(cache_versions, "CHECK_SECONDS", 0)


def define(api: Api, code: str, *allowed: str, **values: Any) -> None:
    """A custom property of products."""
    body: dict[str, Any] = {"Code": code, "Name": {"EN": code}, "EntityName": "General.Products.Products"}
    body["PropertyType"] = "Text"
    if allowed:
        body["LimitToAllowedValues"] = True
        body["AllowedValues"] = [{"PropertyAllowedValueField": value} for value in allowed]
    api.create(DEFINITIONS, body | values)


def test_a_defined_property_can_be_written_read_and_filtered_at_once(api: Api, world: World) -> None:
    define(api, "colour")
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {"CustomProperty_colour": "red"}).status_code == 204
    shown = api.read(f"{product}?$select=CustomProperty_colour")
    assert shown["CustomProperty_colour"]["Value"] == "red"
    assert api.get(f"{PRODUCTS}/$count?$filter=CustomProperty_colour eq 'red'").content == b"1"
    assert api.get(f"{PRODUCTS}/$count?$filter=CustomProperty_colour eq 'blue'").content == b"0"
    assert "CustomProperty_colour" not in api.read(product)
    assert api.patch(product, {"CustomProperty_colour": {"Value": "blue"}}).status_code == 204
    assert api.get(f"{PRODUCTS}/$count?$filter=CustomProperty_colour eq 'blue'").content == b"1"
    assert api.patch(product, {"CustomProperty_colour": None}).status_code == 204
    assert api.read(f"{product}?$select=CustomProperty_colour")["CustomProperty_colour"] is None


@pytest.mark.parametrize("code,escaped", [
    ("plain_1", "CustomProperty_plain_1"), ("a b", "CustomProperty_a_u0020b"), ("№", "CustomProperty__uE28496"),
    ("цвят", "CustomProperty_цвят"), ("size (cm)", "CustomProperty_size_u0020_u0028cm_u0029"),
])  # fmt: skip
def test_other_characters_are_escaped(api: Api, world: World, code: str, escaped: str) -> None:
    define(api, code)
    assert custom_properties.PREFIX + custom_properties.escape_code(code) == escaped
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {escaped: "x"}).status_code == 204, escaped
    assert api.read(f"{product}?$select={quote(escaped)}")[escaped]["Value"] == "x"
    assert api.get("$metadata").content.decode().count(escaped) >= 1
    assert api.get(f"{PRODUCTS}/$count?$filter={quote(escaped)} eq 'x'").content == b"1"


def test_two_codes_do_not_share_a_name(api: Api, world: World) -> None:
    define(api, "a-b")
    define(api, "a_b")
    define(api, "a_u002Db", EntityName="Crm.Sales.SalesOrders")
    body = {"Code": "a_u002Db", "Name": {"EN": "x"}, "EntityName": "General.Products.Products"}
    error = error_of(api.post(DEFINITIONS, body))
    assert (error["type"], error["target"]) == ("ValidationFailed", "Code"), error
    assert "a-b has this name in the API already, as CustomProperty_a_u002Db" in error["message"]
    # Documents have the properties of orders, and orders those of documents.
    error = error_of(api.post(DEFINITIONS, {**body, "Code": "a-b", "EntityName": "General.Documents.Documents"}))
    assert "a_u002Db has this name" in error["message"], error


def test_a_property_without_a_code_is_refused_and_one_that_is_stored_breaks_no_query(api: Api, world: World) -> None:
    body = {"Code": "", "Name": {"EN": "x"}, "EntityName": "General.Products.Products", "PropertyType": "Text"}
    assert error_of(api.post(DEFINITIONS, body))["target"] == "Code"
    define(api, "colour")
    CustomProperty.objects.filter(code="colour").update(code="")
    cache_versions.bump("custom_properties")
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {"CustomProperty_": "red"}).status_code == 204
    assert api.read(f"{product}?$select=*")["CustomProperty_"]["Value"] == "red"
    (found,) = api.read(f"{PRODUCTS}?$filter=CustomProperty_ eq 'red'&$orderby=CustomProperty_&$select=Id")["value"]
    assert found["Id"] == world.product


@pytest.mark.parametrize("kind,value,stored", [
    ("Number", 5, "5"), ("Number", "5.50", "5.5"), ("Number", 1e20, "1" + "0" * 20), ("Number", "0.000", "0"),
    ("Number", "1e9999999", None), ("Number", "1e31", None), ("Number", "1e-31", None), ("Number", "NaN", None),
    ("Number", "-Infinity", None), ("Number", True, None), ("Number", [1], None), ("Number", "five", None),
    ("Date", "2030-01-02", "2030-01-02"), ("Date", "2030-01-02T03:04:05Z", "2030-01-02"), ("Date", "2030-01-02x", None),
    ("Text", 5, "5"), ("Text", "x", "x"), ("Text", True, None), ("Text", [1], None), ("Text", {"Value": {}}, None),
    ("Text", {"Value": "x", "Description": {"EN": 5}}, None), ("Text", {"Value": "x", "Description": [1]}, None),
])  # fmt: skip
def test_a_value_is_one_of_its_type(api: Api, world: World, kind: str, value: Any, stored: str | None) -> None:
    define(api, "p", PropertyType=kind)
    response = api.patch(f"{PRODUCTS}({world.product})", {"CustomProperty_p": value})
    if stored is None:
        assert (response.status_code, error_of(response)["target"]) == (400, "CustomProperty_p")
    else:
        assert response.status_code == 204, response.content
        assert api.read(f"{PRODUCTS}({world.product})?$select=CustomProperty_p")["CustomProperty_p"]["Value"] == stored


def test_a_patch_of_the_description_keeps_the_value_and_the_other_languages(api: Api, world: World) -> None:
    define(api, "p")
    product = f"{PRODUCTS}({world.product})"

    def stored_after(value: Any) -> tuple[str, Any]:
        assert api.patch(product, {"CustomProperty_p": value}).status_code == 204
        stored = api.read(f"{product}?$select=CustomProperty_p")["CustomProperty_p"]
        return stored["Value"], stored["Description"]

    assert stored_after({"Value": "x", "Description": {"EN": "ex", "DE": "ix"}}) == ("x", {"EN": "ex", "DE": "ix"})
    assert stored_after({"Description": {"de": None, "BG": "хикс"}}) == ("x", {"EN": "ex", "BG": "хикс"})
    assert stored_after({"Value": "y"}) == ("y", None)


def test_only_allowed_values_are_taken(api: Api, world: World) -> None:
    define(api, "size", "S", "M", "L")
    product = f"{PRODUCTS}({world.product})"
    assert api.patch(product, {"CustomProperty_size": "M"}).status_code == 204
    refused = api.patch(product, {"CustomProperty_size": "XXL"})
    assert refused.status_code in (400, 500)
    assert error_of(refused)["target"].startswith("CustomProperty_size")
    values = api.read(f"{product}/GetAllowedCustomPropertyValues(customPropertyCode='size')")["value"]
    assert sorted(value["Value"] for value in values) == ["L", "M", "S"]


@pytest.mark.parametrize("source", ["Systems.Documents.DocumentTypes", "Systems_Documents_DocumentTypes"])
def test_allowed_values_may_be_entities(api: Api, world: World, source: str) -> None:
    define(api, "kind", LimitToAllowedValues=True, AllowedValuesEntityName=source)
    body = {"Code": "OF", "TypeName": {"EN": "Offer"}, "EntityName": "Crm.Presales.Offers"}
    offer = api.create("Systems_Documents_DocumentTypes", body)["@odata.id"].partition("(")[2][:-1]
    product = f"{PRODUCTS}({world.product})"
    expected = {"Value": "OF", "Description": {"EN": "Offer"}, "ValueId": offer}
    for value in ("OF", {"Value": "OF"}, {"Value": "whatever it was called", "ValueId": offer}):
        assert api.patch(product, {"CustomProperty_kind": value}).status_code == 204, value
        assert api.read(f"{product}?$select=CustomProperty_kind")["CustomProperty_kind"] == expected
        assert api.patch(product, {"CustomProperty_kind": None}).status_code == 204
    for wrong in ("XX", {"Value": "OF", "ValueId": world.customer}, {"Value": "OF", "ValueId": "x"}):
        refused = api.patch(product, {"CustomProperty_kind": wrong})
        assert (refused.status_code, error_of(refused)["target"]) == (500, "CustomProperty_kind"), wrong
    call = f"{product}/GetAllowedCustomPropertyValues(customPropertyCode='kind'"

    def found(arguments: str = "") -> list[str]:
        return [value["Value"] for value in api.read(f"{call}{arguments})")["value"]]

    assert found() == ["OF", "SO"]
    assert found(",top=1,skip=1") == ["SO"]
    assert (found(",search='ffe'"), found(",search='o%25er'"), found(",search='sale%25',exactMatch=true")) == (
        ["OF"], ["OF", "SO"], ["SO"],
    )  # fmt: skip
    assert found(",search='zz'") == []


def test_an_unknown_one_is_named(api: Api, world: World) -> None:
    refused = api.patch(f"{PRODUCTS}({world.product})", {"CustomProperty_none": "x"})
    assert (refused.status_code, error_of(refused)["type"]) == (400, "UnknownProperty")


def test_pending_values_are_seen_inside_a_transaction(api: Api, world: World) -> None:
    define(api, "colour")
    inside = api.begin()
    assert inside.patch(f"{PRODUCTS}({world.product})", {"CustomProperty_colour": "red"}).status_code == 204
    count = f"{PRODUCTS}/$count?$filter=CustomProperty_colour eq 'red'"
    assert (inside.get(count).content, api.get(count).content) == (b"1", b"0")
    assert inside.end().status_code == 204
    assert api.get(count).content == b"1"


def test_every_process_knows_it_within_five_seconds(live_platform: LivePlatform) -> None:
    caller = Caller(live_platform)
    body = {"Code": "live", "Name": {"EN": "x"}, "EntityName": "General.Products.Products", "PropertyType": "Text"}
    assert caller.send("POST", DEFINITIONS, body).status_code == 201
    time.sleep(5)
    # Each request on a connection of its own, so that every process answers some of them.
    for _ in range(20):
        answer = caller.http.get(
            f"{live_platform.odata_url}{PRODUCTS}?$top=1&$select=CustomProperty_live",
            headers={"Connection": "close"},
            timeout=60,
        )
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("model", ["common", "frontend"])
def test_an_entity_of_a_transaction_has_the_default_values(api: Api, world: World, model: str) -> None:
    define(api, "d", DefaultValue="dv", Required=True)
    inside = api.begin(model=model, trackChanges=True)
    product = {"Name": {"EN": "new"}, "MeasurementUnit@odata.bind": f"General_Products_MeasurementUnits({world.unit})"}
    made = inside.create(PRODUCTS, product)["@odata.id"]
    assert inside.read(f"{made}?$select=CustomProperty_d")["CustomProperty_d"]["Value"] == "dv"
    (told,) = inside.read("GetChanges()")["insert"][PRODUCTS].values()
    assert told["CustomProperty_d"]["Value"] == "dv"
    assert inside.end().status_code == 204
    assert api.read(f"{made}?$select=CustomProperty_d")["CustomProperty_d"]["Value"] == "dv"


def test_names_are_taken_in_any_case(api: Api, world: World) -> None:
    """Spec 02, 2.2, as all names are."""
    define(api, "Colour")
    product, name = f"{PRODUCTS}({world.product})", "customproperty_COLOUR"
    assert api.patch(product, {name: "red"}).status_code == 204
    assert api.get(f"{PRODUCTS}/$count?$filter={name} eq 'red'").content == b"1"
    assert api.read(f"{PRODUCTS}?$orderby={name}")["value"]
    assert api.read(f"{product}?$select={name}")["CustomProperty_Colour"]["Value"] == "red"
    assert api.read(f"{product}/{name}")["Value"] == "red"
    assert "value" in api.read(f"{product}/GetPropertyAllowedValues(propertyName='{name}')")
    script = f"""
    const product = Domain.General.Products.ProductsRepository.getById('{world.product}');
    console.log(`${{product.{name}}}`);
    product.{name} = 'blue';
    console.log(`${{product.{name}}}`);"""
    answer = api.post("ExecuteScript", script, Content_Type="text/plain")
    assert answer.json()["console"] == "red\nblue"
    unknown = api.get(f"{PRODUCTS}?$filter=customproperty_nothing eq 'x'")
    assert (unknown.status_code, error_of(unknown)["type"]) == (400, "UnknownProperty")
