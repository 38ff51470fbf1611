"""Rows of a custom entity: row policies, webhooks, Import, allowed values, history, changes (spec 10, 10.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from foundation import cache_versions
from identity.models import User
from tests.domain.custom_entities.cars import CAR, CARS, ENTITIES
from tests.domain.security.conftest import caller, give_role, person
from tests.support.api import Api, error_of, id_of
from webhooks.models import WebHookDelivery

pytestmark = pytest.mark.once
NAME = "Custom.Fleet.Cars"


@pytest.fixture
def cars(admin: Api) -> Api:
    """Two cars of two brands."""
    admin.create(ENTITIES, CAR)
    for code, brand in (("A", "Volta"), ("B", "Ampere")):
        admin.create(CARS, {"Code": code, "Brand": brand})
    return admin


@pytest.fixture
def driver(cars: Api) -> Api:
    """A person whose role allows everything about cars of one brand."""
    user = person("driver")
    give_role(user, {NAME: "crud"}, {NAME: "Brand eq 'Volta'"})
    cache_versions.expire()
    return caller(user)


def test_row_policies_narrow_reads_and_writes(cars: Api, driver: Api) -> None:
    assert [row["Code"] for row in driver.read(CARS)["value"]] == ["A"]
    hidden = cars.read(f"{CARS}?$filter=Code eq 'B'")["value"][0]["@odata.id"]
    assert driver.get(hidden).status_code == 404
    assert driver.patch(hidden, {"Doors": 2}).status_code == 404
    assert driver.read(f"{CARS}?$apply=aggregate($count as All)")["value"][0]["All"] == 1
    stranger = caller(person("stranger"))
    assert stranger.get(CARS).status_code == 403


def test_pages_of_the_admin_obey_rights(cars: Api, driver: Api) -> None:
    browser = Client()
    browser.force_login(User.objects.get(login="driver"))
    page = browser.get("/admin/custom/car/").content.decode()
    assert "Volta" in page
    assert "Ampere" not in page
    assert browser.get("/admin/domain/customentity/").status_code == 403


def test_a_webhook_tells_of_a_change(cars: Api) -> None:
    hook = {"Code": "CARS", "Name": {"EN": "Cars"}, "RepositoryName": NAME, "URL": "https://example.com/{Code}"}
    cars.create("Systems_Config_WebHooks", {**hook, "Body": '{"brand": "{Brand}", "doors": {Doors}}'})
    rule = {"Code": "TELL", "Name": {"EN": "Tell"}, "RepositoryName": NAME, "IsActive": True}
    action = {"ActionNo": 10, "ActionType": "WEBHOOK", "Parameter1Type": "Constant", "Parameter1Value": "CARS"}
    cars.create("Systems_Bpm_UserBusinessRules", {**rule, "Events": [{"EventType": "COMMIT"}], "Actions": [action]})

    cars.create(CARS, {"Code": "C", "Brand": "Ohm"})
    delivery = WebHookDelivery.objects.get()
    assert delivery.request_url == "https://example.com/C"
    assert json.loads(delivery.request_body) == {"brand": "Ohm", "doors": 4}


def test_import_merges_by_code(cars: Api) -> None:
    objects: list[dict[str, Any]] = [
        {"@odata.type": "Erp.Custom_Fleet_Car", "Code": "A", "Doors": 2},
        {"@odata.type": "Erp.Custom_Fleet_Car", "Code": "N", "Replaces": {"Code": "B"}},
        {"@odata.type": "Erp.Custom_Fleet_Car", "Brand": "no code"},
    ]
    body = json.loads(cars.post("Import", {"objects": objects}).content)
    assert [each["@erpnet.result"] for each in body["objects"]] == ["success", "success", "fail"]
    rows = cars.read(f"{CARS}?$select=Code,Doors&$expand=Replaces($select=Code)&$orderby=Code")["value"]
    assert [(row["Code"], row["Doors"]) for row in rows] == [("A", 2), ("B", 4), ("N", 4)]
    assert rows[2]["Replaces"]["Code"] == "B"


def test_allowed_values(cars: Api) -> None:
    path = cars.read(f"{CARS}?$top=1")["value"][0]["@odata.id"]
    allowed = cars.read(f"{path}/GetPropertyAllowedValues(propertyName='Replaces')")["value"]
    assert {pair["Text"].split()[0] for pair in allowed} == {"A", "B"}
    prop = {"Code": "RISK", "Name": {"EN": "Risk"}, "EntityName": CARS, "PropertyType": "Text"}
    made = cars.create(
        "Systems_Bpm_CustomProperties", {**prop, "AllowedValues": [{"PropertyAllowedValueField": "HIGH"}]}
    )
    assert made["Code"] == "RISK"
    allowed = cars.read(f"{path}/GetAllowedCustomPropertyValues(customPropertyCode='RISK')")["value"]
    assert [pair["Value"] for pair in allowed] == ["HIGH"]


def test_tracked_changes_and_the_page_of_history(cars: Api) -> None:
    car = cars.read(f"{CARS}?$top=1&$select=Id,UpdateTime,CreationUser")["value"][0]
    assert (car["UpdateTime"], bool(car["CreationUser"])) == (None, True)
    cars.patch(car["@odata.id"], {"Doors": 3})
    changed = cars.read(f"{car['@odata.id']}?$select=UpdateTime,UpdateUser")
    assert changed["UpdateTime"]
    assert changed["UpdateUser"]
    browser = Client()
    browser.force_login(User.objects.filter(is_admin=True, active=True, user_type="InternalUser")[0])
    assert browser.get(f"/admin/custom/car/{car['Id']}/history/").status_code == 200


def test_domain_transactions_tell_their_changes(cars: Api) -> None:
    inside = cars.begin(trackChanges=True)
    made = inside.create(CARS, {"Code": "T"})
    told = inside.read("GetChanges")
    assert told["insert"][CARS][id_of(made)]["Code"] == "T"
    assert error_of(inside.post(CARS, {"Code": "12345678901"}))["target"] == "Code"
    assert inside.end(commit=False).status_code < 300
    assert cars.get(made["@odata.id"]).status_code == 404


def test_calculated_attributes(cars: Api) -> None:
    row = {"ExpressionNo": 10, "Operator": "ADD"}
    row |= {
        "Parameter1Type": "Attribute",
        "Parameter1Value": "Doors",
        "Parameter2Type": "Constant",
        "Parameter2Value": "1",
    }
    values = {"RepositoryName": NAME, "Name": "Openings", "Caption": {"EN": "Openings"}, "IsActive": True}
    cars.create("Systems_Bpm_CalculatedAttributes", {**values, "StartingExpressionNo": 10, "Expressions": [row]})
    found = cars.read(f"{CARS}?$filter=CalculatedAttribute_Openings eq 5&$select=Code")["value"]
    assert {each["Code"] for each in found} == {"A", "B"}
