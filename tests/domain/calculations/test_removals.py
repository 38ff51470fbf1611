"""Nothing is removed that a calculated attribute or a display format needs: refused with row and reason (spec 10.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.domain.calculations.conftest import SET, Orders, body, refused
from tests.domain.calculations.test_scripts import script
from tests.domain.custom_entities.cars import CARS, ENTITIES, attribute, entity
from tests.domain.custom_entities.conftest import drop_all, no_model_of_an_emptied_database
from tests.rules.cast import ORDERS
from tests.support.api import Api

__all__ = ["no_model_of_an_emptied_database"]

NAME = "Custom.Fleet.Cars"


def path_of(api: Api, name: str) -> str:
    """The address of a definition."""
    return str(api.read(f"{SET}?$filter=Name eq '{name}'")["value"][0]["@odata.id"])


def test_a_custom_property_that_is_used_stays(orders: Orders) -> None:
    prop = {"Code": "w", "Name": {"EN": "w"}, "EntityName": ORDERS, "PropertyType": "Number"}
    path = orders.api.create("Systems_Bpm_CustomProperties", prop)["@odata.id"]
    orders.define("10: LEN EXP:20\n20: CONCAT ATTRIB:@w CONST:'x'", name="A")
    for answer in (
        orders.api.delete(path),
        orders.api.patch(path, {"IsActive": False}),
        orders.api.patch(path, {"Code": "v"}),
        orders.api.patch(path, {"PropertyType": "Text"}),
    ):
        error = refused(answer, 500)
        assert error["type"] == "CalculatedAttributeInvalid"
        assert f"The calculated attribute A cannot be evaluated: row 20: it uses {ORDERS}.@w" in error["message"]
    assert orders.api.patch(path, {"Notes": "still changeable"}).status_code == 204
    assert orders.api.patch(path_of(orders.api, "A"), {"IsActive": False}).status_code == 204
    assert orders.api.delete(path).status_code in (200, 204)


def test_a_calculated_attribute_that_is_used_stays_with_its_type(orders: Orders) -> None:
    orders.define("10: LEN ATTRIB:DocumentNo", name="A")
    orders.define("10: GETVALUE EXP:30\n30: ADD ATTRIB:#A CONST:1", name="B")
    path = path_of(orders.api, "A")
    for answer in (
        orders.api.delete(path),
        orders.api.patch(path, {"IsActive": False}),
        orders.api.patch(path, {"Name": "C"}),
    ):
        assert f"row 30: it uses {ORDERS}.#A" in refused(answer, 500)["message"]
    row = orders.api.read(f"{path}?$expand=Expressions")["Expressions"][0]["@odata.id"]
    error = refused(orders.api.patch(row, {"Operator": "TOUPPER"}), 500)
    assert "row 30: parameter 1 must be: a number" in error["message"]
    assert orders.api.patch(row, {"Operator": "GETVALUE", "Parameter1Value": "AdjustmentNumber"}).status_code == 204
    assert orders.api.delete(path_of(orders.api, "B")).status_code in (200, 204)
    assert orders.api.delete(path).status_code in (200, 204)


@pytest.fixture
def cars(transactional_db: None, api: Api) -> Iterator[Api]:
    """Cars with a brand of two texts, and a calculated attribute of it."""
    api.create(
        ENTITIES,
        entity(NAME, attribute("Code", Required=True), attribute("Brand"), attribute("Doors", "Integer"),
               attribute("Next", "Reference", TargetRepository=NAME), CodeAttribute="Code"),
    )  # fmt: skip
    notation = "10: CONCAT ATTRIB:Brand CONST:'!'"
    api.create(SET, body(notation, name="Loud", repository=NAME))
    yield api
    drop_all()


def shown(api: Api, code: str) -> tuple[Any, Any]:
    """The display text in a list, and in a script with a pending change, which the dataset renders."""
    row = api.read(f"{CARS}?$filter=Code eq '{code}'&$select=DisplayText")["value"][0]
    source = (
        f"const c = Domain.Custom.Fleet.CarsRepository.query({{Code: '{code}'}})[0];"
        "c.Doors = 9; console.log(c.DisplayText)"
    )
    console = api.request("POST", "ExecuteScript", source, Content_Type="text/plain").json()["console"]
    return row["DisplayText"], console


def test_display_formats_have_calculated_attributes(cars: Api) -> None:
    path = cars.read(ENTITIES)["value"][0]["@odata.id"]
    assert cars.patch(path, {"DisplayFormat": "{Code}: {#Loud} {Next.Loud} {Share:N1}"}).status_code >= 400
    share = cars.create(SET, body("10: DIVIDE CONST:5 ATTRIB:Doors", name="Share", repository=NAME))["@odata.id"]
    assert cars.patch(path, {"DisplayFormat": "{Code}: {#Loud} {Next.Loud} {Share:N1}"}).status_code == 204
    first = cars.create(CARS, {"Code": "a", "Brand": "Volta", "Doors": 9})["@odata.id"]
    cars.create(CARS, {"Code": "b", "Brand": None, "Doors": 0, "Next@odata.bind": first})
    assert shown(cars, "a") == ("a: Volta!  0.6", "a: Volta!  0.6")
    assert cars.read(f"{CARS}?$filter=Code eq 'b'&$select=DisplayText")["value"][0]["DisplayText"] == "b:  Volta! "
    assert [row["Code"] for row in cars.read(f"{CARS}?$search=Volta&$orderby=DisplayText")["value"]] == ["a", "b"]

    removed = refused(cars.delete(share), 500)
    assert f"the display format of {NAME} uses it" in removed["message"]
    row = cars.read(f"{share}?$expand=Expressions")["Expressions"][0]["@odata.id"]
    error = refused(
        cars.patch(row, {"Operator": "FORMATSTRING", "Parameter2Type": "CONST", "Parameter2Value": "'N1'"}), 500
    )
    assert "the database has no FORMATSTRING" in error["message"]
    assert cars.patch(path, {"DisplayFormat": "{Code}"}).status_code == 204
    assert cars.delete(share).status_code in (200, 204)


def test_what_the_database_cannot_compute_is_no_display_text(cars: Api) -> None:
    cars.create(SET, script("return subject.Code", name="Js", repository=NAME))
    path = cars.read(ENTITIES)["value"][0]["@odata.id"]
    error = refused(cars.patch(path, {"DisplayFormat": "{Js}"}), 500)
    assert "the database has no JavaScript" in error["message"]
    refused(cars.patch(path, {"DisplayFormat": "{#Nothing}"}), 500)
    refused(cars.patch(path, {"DisplayFormat": "{@nothing}"}), 500)


def test_a_format_and_an_attribute_of_the_display_text_end(cars: Api) -> None:
    path = cars.read(ENTITIES)["value"][0]["@odata.id"]
    cars.create(SET, body("10: CONCAT CONST:'next ' REF:Next", name="After", repository=NAME))
    assert cars.patch(path, {"DisplayFormat": "{Code} {After}"}).status_code == 204
    first = cars.create(CARS, {"Code": "a"})["@odata.id"]
    cars.create(CARS, {"Code": "b", "Next@odata.bind": first})
    assert shown(cars, "b")[0].startswith("b next a")


def test_attributes_of_a_custom_entity_stay(cars: Api) -> None:
    path = cars.read(ENTITIES)["value"][0]["@odata.id"]
    rows = {row["Name"]: row["@odata.id"] for row in cars.read(f"{path}/Attributes")["value"]}
    for answer in (
        cars.delete(rows["Brand"]),
        cars.patch(rows["Brand"], {"Name": "Make"}),
        cars.patch(rows["Brand"], {"AttributeType": "Integer"}),
    ):
        assert f"row 10: it uses {NAME}.Brand" in refused(answer, 500)["message"]
    assert f"it is an attribute of {NAME}" in refused(cars.delete(path), 500)["message"]
