"""Changes of a definition: planned, confirmed where they lose data, and whole (spec 10, 10.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.custom_entities.cars import CARS, ENTITIES, attribute, entity
from tests.support.api import Api, error_of

ATTRIBUTES = "Systems_Bpm_CustomEntityAttributes"


class Cars:
    """The definition of cars with three cars."""

    def __init__(self, admin: Api) -> None:
        self.admin = admin
        made = admin.create(
            f"{ENTITIES}?$expand=Attributes",
            entity(
                "Custom.Fleet.Cars",
                attribute("Code", Required=True, IsUnique=True),
                attribute("Brand", MaxLength=30, IsIndexed=True),
                attribute("Doors", "Integer"),
                attribute("Price", "Decimal", DecimalPlaces=3),
                attribute("Currency", "Reference", TargetRepository="General.Currencies.Currencies"),
                CodeAttribute="Code",
            ),
        )
        self.path = str(made["@odata.id"])
        rows = admin.read(f"{self.path}/Attributes")["value"]
        self.attributes = {row["Name"]: str(row["@odata.id"]) for row in rows}
        self.rows: dict[str, str] = {}
        for number, brand in enumerate(("Volta", "Ampere", None)):
            body = {"Code": f"C{number}", "Brand": brand, "Doors": number, "Price": number + 0.125}
            self.rows[f"C{number}"] = admin.create(CARS, body)["@odata.id"]

    def column(self, name: str) -> list[Any]:
        """The values of an attribute by code."""
        return [row[name] for row in self.admin.read(f"{CARS}?$select={name}&$orderby=Code")["value"]]

    def change(self, name: str, body: dict[str, Any]) -> Any:
        """The answer to a change of an attribute."""
        return self.admin.patch(self.attributes[name], body)

    def add(self, **members: Any) -> Any:
        """The answer to a new attribute."""
        return self.admin.post(ATTRIBUTES, {"CustomEntity@odata.bind": self.path, **members})

    def confirm(self, refused: Any) -> None:
        """Set the token that the refusal names."""
        error = error_of(refused)
        assert error["type"] == "PlanNotConfirmed", error
        token = error["message"].partition("PlanToken to ")[2].split()[0]
        assert self.admin.patch(self.path, {"PlanToken": token}).status_code < 300


@pytest.fixture
def cars(admin: Api) -> Cars:
    return Cars(admin)


def test_additive_changes_need_no_token(cars: Cars) -> None:
    assert cars.add(Name="Colour", AttributeType="Text", DefaultValue="red", Required=True).status_code == 201
    assert cars.add(Name="Owner2", AttributeType="Reference", TargetRepository="Custom.Fleet.Cars").status_code == 201
    assert cars.column("Colour") == ["red", "red", "red"]
    assert cars.change("Brand", {"MaxLength": 60}).status_code < 300
    assert cars.change("Doors", {"AttributeType": "Decimal", "DecimalPlaces": 2}).status_code < 300
    assert cars.column("Doors") == [0, 1, 2]
    assert cars.admin.patch(cars.rows["C1"], {"Doors": 1.25}).status_code < 300
    assert cars.column("Doors") == [0, 1.25, 2]
    assert cars.change("Price", {"DecimalPlaces": 5}).status_code < 300
    assert cars.column("Price") == [0.125, 1.125, 2.125]


def test_a_renamed_attribute_keeps_its_values_and_its_index(cars: Cars) -> None:
    assert cars.change("Brand", {"Name": "Make", "IsUnique": True}).status_code < 300
    assert cars.column("Make") == ["Volta", "Ampere", None]
    assert error_of(cars.admin.post(CARS, {"Code": "C9", "Make": "Volta"}))["type"] == "DuplicateValue"
    assert cars.admin.get(f"{CARS}?$select=Brand").status_code == 400


@pytest.mark.parametrize("name_of_doors", ["Brand", "Seats"])
def test_an_attribute_takes_the_name_of_one_that_is_renamed(cars: Cars, name_of_doors: str) -> None:
    inside = cars.admin.begin()
    inside.patch(cars.attributes["Brand"], {"Name": "Doors"})
    inside.patch(cars.attributes["Doors"], {"Name": name_of_doors})
    assert inside.end().status_code == 204
    assert cars.column("Doors") == ["Volta", "Ampere", None]
    assert cars.column(name_of_doors) == [0, 1, 2]


def test_a_removed_attribute_needs_the_token_of_its_plan(cars: Cars) -> None:
    refused = cars.admin.delete(cars.attributes["Brand"])
    assert "2 values" in error_of(refused)["message"]
    assert cars.column("Brand") == ["Volta", "Ampere", None]

    cars.confirm(refused)
    # Another number of values is another plan.
    cars.admin.create(CARS, {"Code": "C7", "Brand": "Ohm"})
    refused = cars.admin.delete(cars.attributes["Brand"])
    assert "3 values" in error_of(refused)["message"]

    cars.confirm(refused)
    assert cars.admin.delete(cars.attributes["Brand"]).status_code == 204
    assert cars.admin.get(f"{CARS}?$select=Brand").status_code == 400
    # A token confirms one change, not a later one that reads alike.
    again = cars.add(Name="Brand", AttributeType="Text", DefaultValue="x").json()["@odata.id"]
    cars.admin.delete(cars.admin.read(f"{CARS}?$filter=Code eq 'C7'")["value"][0]["@odata.id"])
    assert error_of(cars.admin.delete(again))["type"] == "PlanNotConfirmed"
    # One without values may go at once, references with their constraint.
    assert cars.admin.delete(cars.attributes["Currency"]).status_code == 204
    assert len(cars.column("Code")) == 3


def test_a_shorter_text_and_a_coarser_number(cars: Cars) -> None:
    refused = cars.change("Brand", {"MaxLength": 5})
    assert "1 value" in error_of(refused)["message"]
    cars.confirm(refused)
    assert cars.change("Brand", {"MaxLength": 5}).status_code < 300
    assert cars.column("Brand") == ["Volta", "Amper", None]

    refused = cars.change("Price", {"DecimalPlaces": 2})
    cars.confirm(refused)
    assert cars.change("Price", {"DecimalPlaces": 2}).status_code < 300
    assert cars.column("Price") == [0.13, 1.13, 2.13]


IMPOSSIBLE = {
    "required without default": ({"Required": True}, "Brand", "1 rows have no value"),
    "another type": ({"AttributeType": "Date", "MaxLength": None}, "Doors", "cannot change from Integer to Date"),
    "another target": ({"TargetRepository": "General.Contacts.Persons"}, "Currency", "another attribute"),
}


@pytest.mark.parametrize("body, name, said", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_changes(cars: Cars, body: dict[str, Any], name: str, said: str) -> None:
    error = error_of(cars.change(name, body))
    assert error["type"] == "CustomEntityInvalid"
    assert said in error["message"]


def test_required_unique_and_deleted(cars: Cars) -> None:
    error = error_of(cars.add(Name="Colour", AttributeType="Text", Required=True))
    assert "3 rows" in error["message"]
    cars.admin.patch(cars.rows["C1"], {"Brand": "Volta"})
    assert "more than once" in error_of(cars.change("Brand", {"IsUnique": True}))["message"]
    assert cars.change("Doors", {"Required": True}).status_code < 300
    assert error_of(cars.admin.post(CARS, {"Code": "C9"}))["target"] == "Doors"
    for member, value in (("Name", "Custom.Fleet.Vans"), ("SingularName", "Van"), ("TrackChanges", True)):
        assert "cannot be changed" in error_of(cars.admin.patch(cars.path, {member: value}))["message"]

    refused = cars.admin.delete(cars.path)
    assert "3 rows" in error_of(refused)["message"]
    cars.confirm(refused)
    assert cars.admin.delete(cars.path).status_code == 204


def test_a_referenced_entity_stays(cars: Cars) -> None:
    cars.admin.create(
        ENTITIES, entity("Custom.Fleet.Trips", attribute("Car", "Reference", TargetRepository="Custom.Fleet.Cars"))
    )
    assert "Custom.Fleet.Trips" in error_of(cars.admin.delete(cars.path))["message"]
    # Both are served after a change of the one that is referred to.
    assert cars.add(Name="Seats", AttributeType="Integer").status_code == 201
    car = cars.admin.read(f"{CARS}?$top=1")["value"][0]
    cars.admin.create("Custom_Fleet_Trips", {"Car@odata.bind": car["@odata.id"]})
    found = cars.admin.read("Custom_Fleet_Trips?$expand=Car&$filter=Car/Seats eq null")["value"]
    assert found[0]["Car"]["Code"] == "C0"


def test_a_domain_transaction_defines_at_its_commit(admin: Api) -> None:
    headers = {"TransactionId": admin.post("BeginTransaction", {}).content.decode()}
    admin.create(ENTITIES, entity("Custom.Fleet.Cars", attribute("Code")), **headers)
    assert admin.get(CARS).status_code == 400
    assert admin.post("EndTransaction", {"commit": True}, **headers).status_code < 300
    assert admin.read(CARS)["value"] == []
