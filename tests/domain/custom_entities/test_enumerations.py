"""Attributes of the type Enumeration: their members are part of the definition (spec 10, 10.3)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from identity.models import User
from tests.domain.custom_entities.cars import CARS, ENTITIES, attribute, entity
from tests.domain.custom_entities.test_changes import ATTRIBUTES, Cars
from tests.domain.table_api.conftest import tables_of
from tests.support.api import Api, error_of, id_of

NAME = "Custom.Fleet.Cars"


class FuelledCars(Cars):
    """Three cars: petrol, diesel, none."""

    def __init__(self, admin: Api) -> None:
        super().__init__(admin)
        made = self.add(Name="Fuel", AttributeType="Enumeration", EnumMembers="Petrol; Diesel; LiquidGas = 10")
        assert made.status_code == 201, made.content
        self.attributes["Fuel"] = json.loads(made.content)["@odata.id"]
        for code, fuel in (("C0", "Petrol"), ("C1", "Diesel")):
            assert admin.patch(self.rows[code], {"Fuel": fuel}).status_code < 300

    @property
    def members(self) -> str:
        return str(self.admin.read(self.attributes["Fuel"])["EnumMembers"])

    def set_members(self, text: str, **others: Any) -> Any:
        """The answer to a change of the members."""
        return self.change("Fuel", {"EnumMembers": text, **others})


@pytest.fixture
def cars(admin: Api) -> FuelledCars:
    return FuelledCars(admin)


def test_members_are_values_and_nothing_else_is(cars: FuelledCars) -> None:
    assert cars.members == "Petrol = 0; Diesel = 1; LiquidGas = 10"
    admin = cars.admin
    assert admin.patch(cars.rows["C2"], {"Fuel": "liquidgas"}).status_code < 300
    assert cars.column("Fuel") == ["Petrol", "Diesel", "LiquidGas"]
    refused = error_of(admin.patch(cars.rows["C2"], {"Fuel": "Coal"}))
    assert (refused["target"], "Petrol | Diesel | LiquidGas" in refused["message"]) == ("Fuel", True)
    assert cars.column("Fuel") == ["Petrol", "Diesel", "LiquidGas"]


QUERIES: dict[str, list[str]] = {
    "$filter=Fuel eq 'Diesel'": ["C1"],
    "$filter=Fuel eq Erp.Custom_Fleet_Cars_Fuel'Diesel'": ["C1"],
    "$filter=Fuel gt 'Petrol'": ["C1"],
    "$filter=Fuel in ('Petrol','Diesel')&$orderby=Fuel desc": ["C1", "C0"],
    "$filter=Fuel ne null&$orderby=Fuel": ["C0", "C1"],
    "$filter=Fuel has Erp.Custom_Fleet_Cars_Fuel'Petrol'": ["C0"],
}


def test_queries(cars: FuelledCars) -> None:
    found = {
        query: [row["Code"] for row in cars.admin.read(f"{CARS}?$select=Code&{query}")["value"]] for query in QUERIES
    }
    assert found == QUERIES
    grouped = cars.admin.read(f"{CARS}?$apply=groupby((Fuel),aggregate($count as Number))&$orderby=Fuel")["value"]
    assert [(row["Fuel"], row["Number"]) for row in grouped] == [(None, 1), ("Petrol", 1), ("Diesel", 1)]


def test_every_document_of_the_model_has_the_type(cars: FuelledCars) -> None:
    text = cars.admin.get("$metadata", Accept="application/xml").content.decode()
    assert '<EnumType Name="Custom_Fleet_Cars_Fuel"><Member Name="Petrol" Value="0"' in text
    assert '<Property Name="Fuel" Type="Erp.Custom_Fleet_Cars_Fuel"' in text
    client, headers = Client(), {"Authorization": f"Bearer {cars.admin.token}"}
    schemas = client.get("/api/openapi.json?namespace=Custom.Fleet", headers=headers).json()["components"]["schemas"]
    assert schemas["Erp.Custom_Fleet_Cars_Fuel"]["enum"] == ["Petrol", "Diesel", "LiquidGas"]
    model = client.get(f"/api/domain/currentmodel/{CARS}", headers=headers).content.decode()
    assert "LiquidGas" in model


def test_the_table_api_has_numbers(cars: FuelledCars) -> None:
    assert [row["Fuel"] for row in tables_of(cars.admin).rows("Custom_Fleet_Cars?$orderby=Code")] == [0, 1, None]


def test_pages_offer_the_members(cars: FuelledCars) -> None:
    browser = Client()
    browser.force_login(User.objects.create_superuser("boss", "vast-Harbour-42"))
    page = browser.get(f"/admin/custom/car/{id_of({'@odata.id': cars.rows['C1']})}/change/").content.decode()
    assert '<option value="Diesel" selected>' in page
    assert '<option value="LiquidGas">' in page
    listed = browser.get("/admin/custom/car/?fuel=Diesel").content.decode()
    # As words: a random token may have the letters.
    assert set(re.findall(r"\bC[0-9]\b", listed)) == {"C1"}


def test_imports_rules_and_calculations_know_members(cars: FuelledCars) -> None:
    admin = cars.admin
    objects = [
        {"@odata.type": "Erp.Custom_Fleet_Car", "Code": code, "Fuel": fuel}
        for code, fuel in (("C2", "LiquidGas"), ("C3", "Coal"))
    ]
    body = json.loads(admin.post("Import", {"objects": objects}).content)
    assert [each["@erpnet.result"] for each in body["objects"]] == ["success", "fail"]
    row = {"ExpressionNo": 10, "Operator": "EQUAL", "Parameter1Type": "Attribute", "Parameter1Value": "Fuel"}
    row |= {"Parameter2Type": "Constant", "Parameter2Value": "'Diesel'"}
    values = {"RepositoryName": NAME, "Name": "IsDirty", "Caption": {"EN": "Dirty"}, "IsActive": True}
    admin.create("Systems_Bpm_CalculatedAttributes", {**values, "StartingExpressionNo": 10, "Expressions": [row]})
    found = admin.read(f"{CARS}?$filter=CalculatedAttribute_IsDirty eq true&$select=Code")["value"]
    assert [each["Code"] for each in found] == ["C1"]
    # The members that a calculation may name stay.
    assert "IsDirty" in error_of(cars.set_members("Petrol; LiquidGas"))["message"]


def test_new_members_follow_and_others_keep_their_numbers(cars: FuelledCars) -> None:
    assert cars.set_members("Hydrogen; Diesel; Petrol; LiquidGas").status_code < 300
    assert cars.members == "Hydrogen = 11; Diesel = 1; Petrol = 0; LiquidGas = 10"
    assert cars.column("Fuel") == ["Petrol", "Diesel", None]
    assert cars.admin.patch(cars.rows["C2"], {"Fuel": "Hydrogen"}).status_code < 300


def test_a_name_with_the_number_of_another_renames_it(cars: FuelledCars) -> None:
    assert cars.set_members("Petrol = 0; Gasoil = 1; LiquidGas = 10").status_code < 300
    assert cars.column("Fuel") == ["Petrol", "Gasoil", None]
    # Numbers that change hands rename nothing: rows have names.
    assert cars.set_members("Petrol = 1; Gasoil = 0; LiquidGas = 10").status_code < 300
    assert cars.column("Fuel") == ["Petrol", "Gasoil", None]


def test_a_removed_member_needs_the_token_of_its_plan(cars: FuelledCars) -> None:
    refused = cars.set_members("Petrol")
    assert "1 row of Fuel loses the removed Diesel" in error_of(refused)["message"]
    assert cars.column("Fuel") == ["Petrol", "Diesel", None]
    cars.confirm(refused)
    assert cars.set_members("Petrol").status_code < 300
    assert cars.column("Fuel") == ["Petrol", None, None]
    assert cars.set_members("Petrol; Diesel").status_code < 300
    assert cars.members == "Petrol = 0; Diesel = 1"


def test_rows_get_the_default_for_a_removed_member(cars: FuelledCars) -> None:
    refused = cars.set_members("Petrol; LiquidGas", DefaultValue="LiquidGas")
    cars.confirm(refused)
    assert cars.set_members("Petrol; LiquidGas", DefaultValue="LiquidGas").status_code < 300
    assert cars.column("Fuel") == ["Petrol", "LiquidGas", None]


def test_what_a_removed_member_makes_impossible(cars: FuelledCars) -> None:
    assert cars.admin.patch(cars.rows["C2"], {"Fuel": "LiquidGas"}).status_code < 300
    assert cars.change("Fuel", {"Required": True, "IsUnique": True}).status_code < 300
    assert "required" in error_of(cars.set_members("Petrol"))["message"]
    assert "unique" in error_of(cars.set_members("Petrol", DefaultValue="Petrol"))["message"]
    assert cars.column("Fuel") == ["Petrol", "Diesel", "LiquidGas"]


def test_a_plan_tells_of_members(cars: FuelledCars) -> None:
    body = {"change": {"Attributes": [{"@odata.id": cars.attributes["Fuel"], "EnumMembers": "Benzin = 0; Gas"}]}}
    plan = json.loads(cars.admin.post(f"{cars.path}/PlanChange", body).content)
    assert [(step["text"], step["lost"]) for step in plan["steps"]] == [
        ("The members of Fuel are renamed: Petrol → Benzin.", 0),
        ("1 row of Fuel loses the removed Diesel, LiquidGas.", 1),
    ]
    assert plan["losesData"] is True


def test_the_type_of_an_attribute_and_an_entity_have_different_names(cars: FuelledCars) -> None:
    other = error_of(cars.admin.post(ENTITIES, entity("Custom.Fleet.Cars.Fuels", attribute("Code"))))
    assert "another type Custom_Fleet_Cars_Fuel" in other["message"]
    assert cars.admin.post(ATTRIBUTES, {"CustomEntity@odata.bind": cars.path, **attribute("Fuel")}).status_code >= 400


def test_types_go_with_their_attributes(cars: FuelledCars) -> None:
    cars.confirm(cars.admin.delete(cars.attributes["Fuel"]))
    assert cars.admin.delete(cars.attributes["Fuel"]).status_code == 204
    assert "Custom_Fleet_Cars_Fuel" not in cars.admin.get("$metadata", Accept="application/xml").content.decode()
    assert cars.admin.get(f"{CARS}?$filter=Code eq Erp.Custom_Fleet_Cars_Fuel'Diesel'").status_code == 400
