"""The default representation of an entity (spec 14.1)."""

from __future__ import annotations

import json

import pytest

from tests.rules.cast import World
from tests.support.api import Api, error_of

CURRENCIES = "General_Currencies_Currencies"
GROUPS = "General_Products_ProductGroups"
ORDERS = "Crm_Sales_SalesOrders"
PRODUCTS = "General_Products_Products"
SYSTEM = {"Id", "ObjectVersion", "ExternalId", "ExternalSystem", "AggregateLastUpdateTimeUtc", "DisplayText"}
GROUP = {"Code": "R", "Name": {"EN": "R"}, "ExternalId": "7", "ExternalSystem": "shop"}


@pytest.mark.parametrize("level", ["minimal", "full", "none"])
def test_system_attributes_are_given_only_when_they_are_selected(api: Api, level: str) -> None:
    path = api.create(GROUPS, GROUP)["@odata.id"]
    accept = {"Accept": f"application/json;odata.metadata={level}"}
    for shown in (api.read(path, **accept), api.read(f"{GROUPS}?$filter=Code eq 'R'", **accept)["value"][0]):
        assert not SYSTEM & set(shown)
        assert shown["Code"] == "R"
    chosen = api.read(f"{path}?$select=default,{','.join(sorted(SYSTEM))}", **accept)
    assert set(chosen) >= SYSTEM
    assert (chosen["ExternalId"], chosen["ExternalSystem"], chosen["ObjectVersion"]) == ("7", "shop", 1)
    assert chosen["Code"] == "R"
    assert set(api.read(f"{path}?$select=*", **accept)) >= SYSTEM


def test_expanded_entities_are_in_their_default_representation_too(api: Api, world: World) -> None:
    product = api.read(f"{PRODUCTS}({world.product})?$expand=ProductGroup,MeasurementUnit($select=Id)")
    assert not SYSTEM & set(product["ProductGroup"])
    assert product["MeasurementUnit"]["Id"] == world.unit


def test_keys_of_bases_custom_properties_and_collections_are_left_out(api: Api, world: World) -> None:
    definition = {"Code": "hue", "Name": {"EN": "Hue"}, "EntityName": "Crm_Sales_Orders", "PropertyType": "Text"}
    api.create("Systems_Bpm_CustomProperties", definition)
    body = {"Customer@odata.bind": f"Crm_Sales_Customers({world.customer})", "CustomProperty_hue": "red"}
    path = api.create(ORDERS, body)["@odata.id"]
    shown = api.read(path)
    assert not (SYSTEM | {"DocumentId", "CustomProperty_hue", "Lines", "StateChanges"}) & set(shown)
    chosen = api.read(f"{path}?$select=DocumentId,CustomProperty_hue&$expand=Lines")
    assert (chosen["DocumentId"], chosen["Lines"]) == (path[-37:-1], [])
    assert chosen["CustomProperty_hue"]["Value"] == "red"


def test_the_body_of_a_201_has_the_key(api: Api, world: World) -> None:
    made = api.create(GROUPS, GROUP)
    assert made["@odata.id"] == f"{GROUPS}({made['Id']})"
    assert SYSTEM & set(made) == {"Id"}
    party = {"@odata.type": "Erp.General_Contacts_Company", "Name": {"EN": "Ltd"}}
    assert set(api.create("General_Contacts_Parties", party)) & SYSTEM == {"Id"}
    key = "01890000-0000-7000-8000-0000000000aa"
    upserted = api.patch(f"{CURRENCIES}({key})", {"CurrencySign": "USD", "Name": "Dollar"})
    assert (upserted.status_code, upserted.json()["Id"]) == (201, key)
    inside = api.begin()
    pending = inside.create(GROUPS, {**GROUP, "Code": "P"}, Accept="application/json;odata.metadata=none")
    assert inside.read(f"{GROUPS}({pending['Id']})")["Code"] == "P"
    line = {"Product@odata.bind": f"{PRODUCTS}({world.product})"}
    order = api.create(ORDERS, {"Customer@odata.bind": f"Crm_Sales_Customers({world.customer})"})["@odata.id"]
    assert "Id" in api.create(f"{order}/Lines", line)


def test_what_is_selected_or_was_not_created_is_given_as_asked(api: Api) -> None:
    assert "Id" not in api.create(f"{GROUPS}?$select=Code", GROUP)
    found = api.post(GROUPS, {"@erpnet.action": "find", "Code": "R"})
    assert (found.status_code, "Id" in found.json()) == (200, False)
    changed = api.patch(found.json()["@odata.id"], {"Notes": "n"}, Prefer="return=representation")
    assert (changed.status_code, "Id" in changed.json()) == (200, False)


def test_a_put_of_the_default_representation_loses_no_external_id(api: Api) -> None:
    path = api.create(GROUPS, GROUP)["@odata.id"]
    shown = {name: value for name, value in api.read(path).items() if "@" not in name}
    answer = api.request("PUT", path, shown)
    assert answer.status_code in (200, 204), answer.content
    assert api.read(f"{path}?$select=ExternalId,ExternalSystem")["ExternalId"] == "7"


def test_batches_and_unknown_members(api: Api) -> None:
    part = {"id": "1", "method": "POST", "url": GROUPS, "body": GROUP}
    answer = api.post("$batch", {"requests": [{**part, "atomicityGroup": "g"}]}).json()["responses"][0]
    assert (answer["status"], set(answer["body"]) & SYSTEM) == (201, {"Id"})
    refused = api.get(f"{GROUPS}?$select=default,ObjectVersions")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "UnknownProperty")
    assert json.loads(refused.content)["error"]["target"]
