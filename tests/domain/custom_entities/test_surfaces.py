"""A custom entity is on every surface that a shipped one is on (spec 10, 10.3)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from domain.entities.custom_entities import live
from identity.models import User
from platform_site import configuration, configuration_changes
from tests.domain.custom_entities.cars import CAR, CARS, ENTITIES, attribute, entity
from tests.scripts.cast import console, execute
from tests.support.api import Api, error_of, id_of

pytestmark = pytest.mark.once
CAR_NAME = "Custom.Fleet.Cars"


@pytest.fixture
def browser(admin: Api) -> Client:
    """An administrator's browser; cars are defined."""
    admin.create(ENTITIES, CAR)
    client = Client()
    client.force_login(User.objects.filter(is_admin=True, active=True, user_type="InternalUser")[0])
    return client


def test_documents_of_the_model(admin: Api, browser: Client) -> None:
    for path in ("/api/openapi.json?namespace=Custom.Fleet", "/api/domain/currentmodel/Custom_Fleet_Cars"):
        headers = {"Authorization": f"Bearer {admin.token}"}
        assert CARS in browser.get(path, headers=headers).content.decode()
    events = admin.get(f"GetRepositoryEvents(repositoryName='{CAR_NAME}')")
    assert "ATTRIBUTECHANGED" in events.content.decode()


def test_pages_of_the_admin(browser: Client) -> None:
    home = browser.get("/admin/").content.decode()
    assert "/admin/custom/car/" in home
    assert browser.get("/admin/custom/car/").status_code == 200
    page = browser.get("/admin/custom/car/add/")
    assert page.status_code == 200
    assert b'name="brand"' in page.content
    assert browser.get("/admin/domain/customentity/add/").status_code == 200


def test_rules_and_scripts(admin: Api, browser: Client) -> None:
    rule = {
        "Code": "CARS",
        "Name": {"EN": "Cars"},
        "RepositoryName": CAR_NAME,
        "IsActive": True,
        "Events": [{"EventType": "ATTRIBUTECHANGING", "EventParameter": "Doors"}],
        "Conditions": [
            {"AttributeName": "$NewValue", "ComparisonType": "Greater_Than", "Value": "5", "ConditionNo": 10}
        ],
        "Actions": [
            {"ActionNo": 10, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "too many doors"}
        ],
    }
    admin.create("Systems_Bpm_UserBusinessRules", rule)
    assert "too many doors" in error_of(admin.post(CARS, {"Code": "A", "Doors": 6}))["message"]
    admin.create(CARS, {"Code": "A", "Doors": 5})
    car = "Domain.Custom.Fleet.CarsRepository.query({ Code: 'A' })[0]"
    assert console(admin, f"const car = {car}; console.log(car.Doors, car.Brand)").split()[0] == "5"
    assert "too many doors" in execute(admin, f"{car}.Doors = 7; Transaction.commit()").content.decode()
    # A script sees the attributes of the current definition.
    body = {"CustomEntity@odata.bind": entity_path(admin, CAR_NAME), **attribute("Seats", "Integer", DefaultValue="5")}
    admin.create("Systems_Bpm_CustomEntityAttributes", body)
    assert console(admin, f"console.log({car}.Seats)") == "5"


def test_a_definition_changes_while_a_rule_names_it(admin: Api, browser: Client) -> None:
    row = admin.create(CARS, {"Code": "A"})
    properties = {"Code": "RISK", "Name": {"EN": "Risk"}, "EntityName": CARS, "PropertyType": "Text"}
    admin.create("Systems_Bpm_CustomProperties", properties)
    assert admin.patch(row["@odata.id"], {"CustomProperty_RISK": {"Value": "HIGH"}}).status_code < 300


def test_batches_see_what_their_earlier_parts_define(admin: Api) -> None:
    parts = [
        {"id": "1", "method": "POST", "url": ENTITIES, "body": CAR},
        {"id": "2", "method": "POST", "url": CARS, "body": {"Code": "A"}},
        {"id": "3", "method": "GET", "url": f"{CARS}/$count"},
    ]
    answer = admin.post("$batch", {"requests": parts})
    assert [part["status"] for part in json.loads(answer.content)["responses"]] == [201, 201, 200]


def test_lines_belong_to_their_owner(admin: Api, browser: Client) -> None:
    admin.create(
        ENTITIES,
        entity("Custom.Fleet.Services", attribute("Cost", "Decimal"), OwnerRepository=CAR_NAME, TrackChanges=True),
    )
    made = admin.create(CARS, {"Code": "A", "Services": [{"Cost": 10}, {"Cost": 20}]})
    read = admin.read(f"{CARS}({id_of(made)})?$expand=Services($orderby=Cost)")
    assert [row["Cost"] for row in read["Services"]] == [10, 20]
    assert admin.read("Custom_Fleet_Services?$filter=Owner/Code eq 'A'&$count=true")["@odata.count"] == 2
    assert browser.get(f"/admin/custom/car/{id_of(made)}/change/").status_code == 200
    assert admin.delete(made["@odata.id"]).status_code == 204
    assert admin.read("Custom_Fleet_Services")["value"] == []
    circle = error_of(admin.patch(entity_path(admin, CAR_NAME), {"OwnerRepository": "Custom.Fleet.Services"}))
    assert circle["type"] == "CustomEntityInvalid"


def test_definitions_are_configuration(admin: Api, browser: Client) -> None:
    trips = entity("Custom.Fleet.ATrips", attribute("Car", "Reference", TargetRepository=CAR_NAME))
    admin.create(ENTITIES, trips)
    document: Any = configuration.load(configuration.dump(configuration.export()))
    assert set(document["custom_entities"]) == {CAR_NAME, "Custom.Fleet.ATrips"}
    assert configuration_changes.compare(document) == []

    empty = {**document, "custom_entities": {}}
    configuration_changes.apply(configuration_changes.compare(empty, delete=True))
    assert live.served() == {}
    configuration_changes.apply(configuration_changes.compare(document))
    assert configuration_changes.compare(document) == []
    admin.create(CARS, {"Code": "A"})


def entity_path(admin: Api, name: str) -> str:
    """The path of a definition."""
    return str(admin.read(f"{ENTITIES}?$filter=Name eq '{name}'")["value"][0]["@odata.id"])


def test_a_list_shows_the_attributes_in_their_order(admin: Api, browser: Client) -> None:
    admin.create(CARS, {"Code": "A", "Title": {"EN": "Blue"}, "Brand": "Škoda"})
    page = browser.get("/admin/custom/car/").content.decode()
    heads = re.findall(r'class="[^"]*column-(\w+)', page)
    assert heads[1:] == ["code", "title", "brand", "doors", "consumption", "currency"]
    assert "Škoda" in page


def test_pages_show_the_display_format(admin: Api, browser: Client) -> None:
    row = admin.create(CARS, {"Code": "A-001", "Title": {"EN": "Blue"}})
    assert admin.read(f"{row['@odata.id']}?$select=DisplayText")["DisplayText"] == "A-001 Blue"
    page = browser.get(f"/admin/custom/car/{id_of(row)}/change/").content.decode()
    assert "A-001 Blue" in page
    assert "Blue (A-001)" not in page
