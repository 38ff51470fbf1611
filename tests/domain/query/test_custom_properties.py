"""Custom properties in queries (spec 08, 8.2)."""

from __future__ import annotations

import orjson
import pytest

from domain.entities.general_products import Product
from domain.entities.systems_custom_properties import CustomProperty
from domain.model.registry import repositories
from domain.query import select_rows
from foundation import cache_versions, errors
from identity.context import CallContext
from tests.domain.query.conftest import Ask, english
from tests.domain.query.reference import Row

SET = "General_Products_Products"
VALUES = ("red", "Red", None, "5", "12.5", "2024-02-29")


@pytest.fixture
def painted(products: list[Row]) -> list[Row]:
    """Products with a property `color of paint`; the first ones have values."""
    CustomProperty.objects.create(
        code="color of paint", name=english("Color"), entity_name="General.Products.Products", property_type="Text"
    )
    cache_versions.bump("custom_properties")
    cache_versions.expire()
    for row, value in zip(products, VALUES, strict=False):
        if value is not None:
            stored = {"color of paint": {"Value": value, "Description": {"EN": value.title()}}}
            Product.objects.filter(id=row["Id"]).update(custom_property_values=stored)
    return products


NAME = "CustomProperty_color_u0020of_u0020paint"


@pytest.mark.parametrize(
    "condition, found",
    [
        (f"{NAME} eq 'red'", [0]),
        (f"{NAME}/Value eq 'Red'", [1]),
        (f"startswith({NAME},'r')", [0]),
        (f"{NAME} in ('red','Red')", [0, 1]),
        (f"{NAME} ne null", [0, 1, 3, 4, 5]),
        (f"{NAME} gt 5", [4]),
        (f"{NAME} eq 12.5", [4]),
        (f"{NAME} ge 2024-01-01", [5]),
        (f"{NAME.lower().replace('customproperty', 'CustomProperty')} eq 'red'", None),
    ],
)
def test_filters(painted: list[Row], ask: Ask, condition: str, found: list[int] | None) -> None:
    if found is None:
        with pytest.raises(errors.BadRequest):
            ask(SET, f"$select=Id&$filter={NAME}x eq 'red'")
        return
    rows = ask(SET, f"$select=Id&$filter={condition}")["value"]
    assert [row["Id"] for row in rows] == [painted[index]["Id"] for index in found]


def test_values_are_shown_when_they_are_asked_for(painted: list[Row], ask: Ask, context: CallContext) -> None:
    rows = ask(SET, f"$select={NAME}&$top=3&$orderby=Id")["value"]
    assert rows[0][NAME] == {"Value": "red", "Description": {"EN": "Red"}}
    assert rows[2][NAME] is None
    assert NAME not in ask(SET, "$top=1")["value"][0]
    assert NAME in ask(SET, "$select=*&$top=1")["value"][0]
    products = repositories["General.Products.Products"]
    values = select_rows(products, [NAME, f"{NAME}/Value"], ctx=context, limit=1)
    assert values == [({"Value": "red", "Description": {"EN": "Red"}}, "red")]
    assert orjson.loads(orjson.dumps(values[0][0]))["Value"] == "red"


def test_rows_can_be_ordered_and_grouped_by_them(painted: list[Row], ask: Ask) -> None:
    rows = ask(SET, f"$select=Id&$orderby={NAME} desc&$top=2")["value"]
    assert [row["Id"] for row in rows] == [painted[0]["Id"], painted[1]["Id"]]
    groups = ask(SET, f"$apply=groupby(({NAME}),aggregate($count as N))")["value"]
    assert sum(row["N"] for row in groups) == len(painted)
