"""Allowed values of custom properties: by filter of entities, by the value of a parent property (spec 10, 10.2)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.model.filter_xml import filter_of_xml
from domain.model.registry import repositories
from foundation import errors
from tests.domain.odata.test_custom_properties_end_to_end import DEFINITIONS, define, look_again
from tests.domain.odata.test_custom_property_types import new_product
from tests.domain.odata.test_writing import PRODUCTS
from tests.rules.cast import World
from tests.support.api import Api, error_of

__all__ = ["look_again"]

FROM_PRODUCTS = {"PropertyType": "Reference", "AllowedValuesEntityName": "General.Products.Products"}


def allowed(api: Api, product: str, code: str, arguments: str = "") -> list[str]:
    """The values that the operation answers."""
    call = f"{product}/GetAllowedCustomPropertyValues(customPropertyCode='{code}'{arguments})"
    return [value["Value"] for value in api.read(call)["value"]]


def texts(api: Api, product: str, name: str) -> list[str]:
    call = f"{product}/GetPropertyAllowedValues(propertyName='{name}')"
    return [value["Value"] for value in api.read(call)["value"]]


def definition_path(api: Api, code: str) -> str:
    (found,) = api.read(f"{DEFINITIONS}?$filter=Code eq '{code}'")["value"]
    return str(found["@odata.id"])


XML = """<Filter>
  <Condition Attribute="PartNumber" Operator="Like" Value="a*"/>
  <Not><Condition Attribute="ProductGroup.Code" Operator="IsNull"/></Not>
</Filter>"""


@pytest.mark.parametrize(
    "filters",
    [
        {"AllowedValuesFilter": "startswith(PartNumber,'A')"},
        {"AllowedValuesFilterXML": XML},
        {"AllowedValuesFilter": "PartNumber ne 'B1'", "AllowedValuesFilterXML": XML},
    ],
    ids=["odata", "xml", "both"],
)
def test_a_filter_says_which_entities_are_allowed(api: Api, world: World, filters: dict[str, str]) -> None:
    define(api, "part", **FROM_PRODUCTS, **filters)
    for number in ("A1", "A2", "B1"):
        new_product(api, world, PartNumber=number)
    product = f"{PRODUCTS}({world.product})"
    assert allowed(api, product, "part") == ["A1", "A2"]
    assert allowed(api, product, "part", ",search='2'") == ["A2"]
    assert texts(api, product, "CustomProperty_part") == ["A1", "A2"]
    assert api.patch(product, {"CustomProperty_part": "A2"}).status_code == 204
    refused = error_of(api.patch(product, {"CustomProperty_part": "B1"}))
    assert refused["target"] == "CustomProperty_part"
    assert "B1" in refused["message"]
    assert "filter" in refused["message"]


def test_values_depend_on_the_parents_value(api: Api, world: World) -> None:
    define(api, "country", "BG", "DE")
    country = definition_path(api, "country")
    ids = {
        each["PropertyAllowedValueField"]: each["@odata.id"].partition("(")[2][:-1]
        for each in api.read(f"{country}/AllowedValues")["value"]
    }
    cities = [("Sofia", "BG"), ("Varna", "BG"), ("Bonn", "DE"), ("Elsewhere", "")]
    values = [
        {"PropertyAllowedValueField": city, **({"ParentAllowedValueId": ids[code]} if code else {})}
        for city, code in cities
    ]
    define(api, "city", LimitToAllowedValues=True, AllowedValues=values,
           **{"AllowedValuesParentProperty@odata.bind": country})  # fmt: skip
    product = f"{PRODUCTS}({world.product})"
    assert allowed(api, product, "city") == ["Elsewhere"]
    # In one request the child may come first.
    assert api.patch(product, {"CustomProperty_city": "Sofia", "CustomProperty_country": "BG"}).status_code == 204
    assert allowed(api, product, "city") == ["Elsewhere", "Sofia", "Varna"]
    assert texts(api, product, "CustomProperty_city") == ["Elsewhere", "Sofia", "Varna"]
    for body in ({"CustomProperty_city": "Bonn"}, {"CustomProperty_country": "DE"}, {"CustomProperty_country": None}):
        refused = error_of(api.patch(product, body))
        assert refused["target"] == "CustomProperty_city", body
        assert "CustomProperty_country" in refused["message"]
    assert api.patch(product, {"CustomProperty_country": "DE", "CustomProperty_city": "Bonn"}).status_code == 204
    assert api.patch(product, {"CustomProperty_country": None, "CustomProperty_city": "Elsewhere"}).status_code == 204


@pytest.mark.parametrize(
    "name, filter",
    [
        ("AllowedValuesFilter", "startswith(PartNumber,@parent) and PartNumber ne '@parent'"),
        ("AllowedValuesFilterXML", '<Filter><Condition Attribute="ProductGroup.Code" Value="@parent"/></Filter>'),
    ],
)
def test_a_filter_may_name_the_parents_value(api: Api, world: World, name: str, filter: str) -> None:
    define(api, "kind")
    bound = {"AllowedValuesParentProperty@odata.bind": definition_path(api, "kind")}
    define(api, "part", **FROM_PRODUCTS, **{name: filter}, **bound)
    group = api.read(f"{PRODUCTS}({world.product})?$expand=ProductGroup($select=Code)")["ProductGroup"]["Code"]
    good = group if name.endswith("XML") else "A"
    new_product(api, world, PartNumber="A1")
    product = f"{PRODUCTS}({world.product})"
    assert allowed(api, product, "part") == []
    assert api.patch(product, {"CustomProperty_part": "A1", "CustomProperty_kind": good}).status_code == 204
    assert "A1" in allowed(api, product, "part")
    refused = error_of(api.patch(product, {"CustomProperty_kind": "it's"}))
    assert refused["target"] == "CustomProperty_part"


def test_a_value_of_a_company_is_for_its_entities(api: Api, world: World) -> None:
    define(api, "p", "all", EntityName="Crm.Sales.SalesOrders")
    company = api.read("General_EnterpriseCompanies?$top=1")["value"]
    if not company:
        pytest.skip("the cast has no company")
    value = {"PropertyAllowedValueField": "one", "EnterpriseCompany@odata.bind": company[0]["@odata.id"]}
    assert api.post(f"{definition_path(api, 'p')}/AllowedValues", value).status_code == 201


@pytest.mark.parametrize(
    "values, target, said",
    [
        ({**FROM_PRODUCTS, "AllowedValuesFilter": "Colour eq 'x'"}, "AllowedValuesFilter", "Colour"),
        ({**FROM_PRODUCTS, "AllowedValuesFilter": "PartNumber eq"}, "AllowedValuesFilter", "position"),
        ({**FROM_PRODUCTS, "AllowedValuesFilter": "PartNumber eq @parent"}, "AllowedValuesFilter", "@parent"),
        ({"AllowedValuesFilter": "PartNumber eq 'x'"}, "AllowedValuesFilter", "AllowedValuesEntityName"),
        ({**FROM_PRODUCTS, "AllowedValuesFilterXML": "<Filter>"}, "AllowedValuesFilterXML", "line 1"),
        ({**FROM_PRODUCTS, "AllowedValuesFilterXML": "<Filter/>"}, "AllowedValuesFilterXML", "no condition"),
        ({**FROM_PRODUCTS, "AllowedValuesFilterXML": "<Query/>"}, "AllowedValuesFilterXML", "Query"),
        ({**FROM_PRODUCTS, "AllowedValuesFilterXML": '<!DOCTYPE f [<!ENTITY a "b">]><Filter>&a;</Filter>'},
         "AllowedValuesFilterXML", "document type"),
        ({**FROM_PRODUCTS, "AllowedValuesFilterXML": '<Filter><Condition Attribute="Colour" Value="x"/></Filter>'},
         "AllowedValuesFilterXML", "Colour"),
        ({**FROM_PRODUCTS, "AllowedValuesFilterXML":
          '<Filter><Condition Attribute="Active" Value="true or true"/></Filter>'},
         "AllowedValuesFilterXML", "true or true"),
        ({**FROM_PRODUCTS, "AllowedValuesFilterXML":
          '<Filter><Condition Attribute="Name" Operator="Near" Value="x"/></Filter>'},
         "AllowedValuesFilterXML", "Near"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_a_wrong_filter_is_refused_when_saved(
    api: Api, world: World, values: dict[str, Any], target: str, said: str
) -> None:
    body = {"Code": "p", "Name": {"EN": "p"}, "EntityName": "General.Products.Products", **values}
    refused = error_of(api.post(DEFINITIONS, body))
    assert refused["target"] == target, refused
    assert said in refused["message"], refused["message"]


def test_a_parent_belongs_to_the_same_entities_and_no_circle_arises(api: Api, world: World) -> None:
    define(api, "a")
    define(api, "b", **{"AllowedValuesParentProperty@odata.bind": definition_path(api, "a")})
    define(api, "c", EntityName="Crm.Customers")
    for path, other in (("a", "b"), ("a", "a"), ("a", "c")):
        body = {"AllowedValuesParentProperty@odata.bind": definition_path(api, other)}
        refused = error_of(api.patch(definition_path(api, path), body))
        assert refused["target"] == "AllowedValuesParentProperty", (path, other)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=st.text(max_size=20), operator=st.sampled_from(["Equals", "Like", "NotEquals", "Greater_Than"]))
def test_no_text_leaves_its_literal(value: str, operator: str) -> None:
    """Whatever the value is, the filter is one comparison of one attribute with one literal."""
    from domain.query.api.rows import parse_filter

    repository = repositories["General.Products.Products"]
    xml = f"<Filter><Condition Attribute='PartNumber' Operator='{operator}' Value={quoteattr(value)}/></Filter>"
    try:
        text = filter_of_xml(repository, xml, "AllowedValuesFilterXML")
    except errors.Refused:
        return  # no XML document has such a character
    tree = parse_filter(text)
    assert type(tree).__name__ in ("Comparison", "FunctionCall"), text
    assert quote(text)
