"""An administrator defines an entity, and the Domain API serves it (spec 10, 10.3)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from foundation.fields import utc_now
from tests.domain.custom_entities.cars import CAR, CARS, ENTITIES, attribute, entity
from tests.support.api import Api, error_of, id_of

ROW: dict[str, Any] = {
    "Code": "A-1",
    "Title": {"EN": "Van", "DE": "Transporter"},
    "Brand": "Volta",
    "Consumption": 7.25,
    "Built": "2024-05-06",
    "SeenAt": "2026-01-02T03:04:05Z",
    "Tag": "0b7cbd1e-7a4e-4f46-a1ac-54b0ddc1ab4a",
    "Photo": "AQID",
    "Fuel": "Diesel",
}


def test_an_entity_is_there_after_one_post(admin: Api) -> None:
    admin.create(ENTITIES, CAR)

    made = admin.create(CARS, ROW)
    read = admin.read(f"{CARS}({id_of(made)})?$select=*,DisplayText")

    assert read["Doors"] == 4
    assert read["Electric"] is False
    assert read["DisplayText"] == "A-1 Van"
    assert {name: read[name] for name in ("Code", "Brand", "Built", "SeenAt", "Tag", "Photo", "Fuel")} == {
        name: ROW[name] for name in ("Code", "Brand", "Built", "SeenAt", "Tag", "Photo", "Fuel")
    }
    assert read["Consumption"] == 7.25
    assert read["CreationUser"]


def test_queries_amounts_and_references(admin: Api) -> None:
    admin.create(ENTITIES, CAR)
    currency = admin.create("General_Currencies_Currencies", {"CurrencySign": "XTS", "Name": "test"})
    first = admin.create(CARS, {**ROW, "Currency@odata.bind": currency["@odata.id"], "Price": {"Value": 10.5}})
    second = admin.create(CARS, {"Code": "A-2", "Replaces@odata.bind": first["@odata.id"]})

    found = admin.read(f"{CARS}?$filter=Replaces/Code eq 'A-1'&$expand=Replaces($select=Code)&$select=Code")
    assert [(row["Code"], row["Replaces"]["Code"]) for row in found["value"]] == [("A-2", "A-1")]
    assert admin.read(f"{CARS}({id_of(first)})?$select=Price")["Price"] == {"Value": 10.5, "Currency": "XTS"}
    admin.patch(second["@odata.id"], {"Doors": 2})
    assert admin.read(f"{CARS}?$apply=aggregate(Doors with sum as All)")["value"][0]["All"] == 6
    assert error_of(admin.delete(first["@odata.id"]))["type"] == "ReferenceInUse"
    assert admin.delete(second["@odata.id"]).status_code == 204


def test_unique_values_and_required_ones(admin: Api) -> None:
    admin.create(ENTITIES, CAR)
    admin.create(CARS, ROW)

    double = error_of(admin.post(CARS, {"Code": "A-1"}))
    assert (double["type"], double["target"]) == ("DuplicateValue", "Code")
    assert error_of(admin.post(CARS, {**ROW, "Code": "A-2"}))["type"] == "DuplicateValue"
    assert error_of(admin.post(CARS, {"Brand": "x"}))["target"] == "Code"
    assert error_of(admin.post(CARS, {"Code": "12345678901"}))["target"] == "Code"


def test_it_is_in_every_model_document(admin: Api) -> None:
    admin.create(ENTITIES, CAR)

    assert 'Name="Custom_Fleet_Cars"' in admin.get("$metadata", Accept="application/xml").content.decode()
    assert CARS in {row["name"] for row in admin.read("")["value"]}


def test_a_deleted_entity_is_gone(admin: Api) -> None:
    made = admin.create(ENTITIES, CAR)

    assert admin.delete(made["@odata.id"]).status_code == 204
    assert admin.get(CARS).status_code == 400
    # Its name is free again.
    admin.create(ENTITIES, CAR)
    assert admin.read(CARS)["value"] == []


REFUSED = {
    "reserved": (entity("Custom.Fleet.Cars", attribute("ObjectVersion")), "reserved"),
    "method": (entity("Custom.Fleet.Cars", attribute("Save")), "reserved"),
    "shipped namespace": (entity("General.Products.Cars"), "Custom.Fleet.Cars"),
    "bad characters": (entity("Custom.Fleet.Cars; DROP TABLE x"), "Custom.Fleet.Cars"),
    "bad attribute": (entity("Custom.Fleet.Cars", attribute('x"y')), "letters and digits"),
    "no target": (entity("Custom.Fleet.Cars", attribute("Driver", "Reference")), "TargetRepository"),
    "missing target": (
        entity("Custom.Fleet.Cars", attribute("Driver", "Reference", TargetRepository="General.Contacts.Persns")),
        "Persons",
    ),
    "two of a name": (entity("Custom.Fleet.Cars", attribute("Brand"), attribute("Brand")), "two attributes"),
    "bad default": (entity("Custom.Fleet.Cars", attribute("Doors", "Integer", DefaultValue="four")), "four"),
    "long default": (entity("Custom.Fleet.Cars", attribute("A", MaxLength=2, DefaultValue="four")), "longer"),
    "open brace": (entity("Custom.Fleet.Cars", attribute("Brand"), DisplayFormat="{Brand"), "never closed"),
    "unknown in format": (entity("Custom.Fleet.Cars", attribute("Brand"), DisplayFormat="{Brnd}"), "Brnd"),
    "unknown unique": (entity("Custom.Fleet.Cars", attribute("Brand"), UniqueConstraints="Brand, X"), "X"),
    "no members": (entity("Custom.Fleet.Cars", attribute("Fuel", "Enumeration")), "name its members"),
    "bad member": (
        entity("Custom.Fleet.Cars", attribute("Fuel", "Enumeration", EnumMembers="Petrol; 2; a-b = 3")),
        "the member 2 must be letters and digits",
    ),
    "negative number": (
        entity("Custom.Fleet.Cars", attribute("Fuel", "Enumeration", EnumMembers="Petrol = -1")),
        "the member Petrol = -1 must be",
    ),
    "keyword": (entity("Custom.Fleet.Cars", attribute("Fuel", "Enumeration", EnumMembers="None")), "reserved"),
    "two members": (
        entity("Custom.Fleet.Cars", attribute("Fuel", "Enumeration", EnumMembers="Petrol; PETROL")),
        "two members PETROL",
    ),
    "two numbers": (
        entity("Custom.Fleet.Cars", attribute("Fuel", "Enumeration", EnumMembers="Petrol = 1; Diesel = 1")),
        "the number of Diesel is taken",
    ),
    "large number": (
        entity("Custom.Fleet.Cars", attribute("Fuel", "Enumeration", EnumMembers=f"Petrol = {2**31}")),
        "above 2147483647",
    ),
    "many members": (
        entity(
            "Custom.Fleet.Cars",
            attribute("Fuel", "Enumeration", EnumMembers=";".join(f"M{number}" for number in range(201))),
        ),
        "more than 200 members",
    ),
    "member as default": (
        entity("Custom.Fleet.Cars", attribute("Fuel", "Enumeration", EnumMembers="Petrol", DefaultValue="Coal")),
        "Coal",
    ),
    "type of an attribute": (
        entity(
            "Custom.Fleet.Cars",
            *(attribute(name, "Enumeration", EnumMembers="A") for name in ("FuelType", "Fueltype")),
        ),
        "another type Custom_Fleet_Cars_Fuel",
    ),
    "no measure": (entity("Custom.Fleet.Cars", attribute("Price", "Amount")), "General.Currencies.Currencies"),
    "own owner": (entity("Custom.Fleet.Cars", OwnerRepository="Custom.Fleet.Cars"), "circle"),
    "no owner": (entity("Custom.Fleet.Cars", OwnerRepository="Custom.Fleet.Lorries"), "Custom.Fleet.Lorries"),
}


@pytest.mark.parametrize("definition, said", REFUSED.values(), ids=REFUSED)
def test_refused_with_reasons(admin: Api, definition: dict[str, Any], said: str) -> None:
    error = error_of(admin.post(ENTITIES, definition))

    assert error["type"] == "CustomEntityInvalid"
    assert said in error["message"]
    assert admin.get(CARS).status_code == 400


def test_names_that_exist(admin: Api) -> None:
    admin.create(ENTITIES, CAR)

    assert "already" in error_of(admin.post(ENTITIES, CAR))["message"]
    other = entity("Custom.Rental.Cars", attribute("Code"))
    assert "singular" in error_of(admin.post(ENTITIES, other))["message"]
    admin.create(ENTITIES, {**other, "SingularName": "RentalCar"})
    assert admin.read("Custom_Rental_Cars")["value"] == []


def test_only_administrators_define_entities(admin: Api) -> None:
    from domain.model.administration import needs_administrator
    from domain.model.registry import repositories

    for name in ("Systems.Bpm.CustomEntities", "Systems.Bpm.CustomEntityAttributes"):
        assert all(needs_administrator(repositories[name], each) for each in ("create", "update", "delete"))


def test_the_history_keeps_what_the_setting_says(admin: Api) -> None:
    admin.create(ENTITIES, CAR)
    setting = {"RepositoryName": "Custom.Fleet.Cars", "TrackingLevel": "TrackObjectAndAttributeChanges"}
    admin.create("Systems_Core_RepositoryTracking", setting)
    id = id_of(admin.create(CARS, {**ROW, "Doors": 4}))
    before, at = admin.read(f"{CARS}({id})"), utc_now()
    assert admin.patch(f"{CARS}({id})", {"Doors": 5, "Title": {"EN": "Later"}}).status_code < 300
    query = f"Systems_Core_ObjectChanges?$filter=EntityItemId eq {id}&$orderby=ItemVersion desc&$top=1"
    (changed,) = admin.read(query)["value"]
    assert json.loads(changed["Changes"])["Doors"] == [4, 5]
    assert admin.read(f"{CARS}({id})?$at={quote(at.isoformat())}") == before
    assert admin.delete(f"{CARS}({id})").status_code == 204
    assert id_of(admin.read(f"{CARS}?$at={quote(at.isoformat())}&$filter=Doors eq 4")["value"][0]) == id
