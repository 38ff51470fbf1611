"""The model for tools and people besides $metadata: plain JSON, pages, reset (spec 02, 2.1)."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from domain.model import custom_properties
from domain.model.registry import repositories
from foundation import stamps
from tests.domain.security.conftest import caller, give_role, person
from tests.rules.cast import World
from tests.support.api import Api, error_of

STANDARD = "/api/domain/standardmodel"
CURRENT = "/api/domain/currentmodel"
ORDERS = "Crm_Sales_SalesOrders"


def _read(client: Client, path: str, **headers: str) -> Any:
    response: Any = client.get(path, headers=headers)
    assert response.status_code == 200, response.content
    return response.json()


def _bearer(api: Api) -> dict[str, str]:
    return {"Authorization": f"Bearer {api.token}"}


def _colour(api: Api) -> None:
    api.create(
        "Systems_Bpm_CustomProperties",
        {"Code": "colour", "Name": {"EN": "Colour"}, "EntityName": "General.Products.Products"},
    )


def test_anybody_may_see_what_is_shipped(db: None, client: Client) -> None:
    body = _read(client, STANDARD)
    assert {node["name"] for node in body["entitySets"]} == set(repositories.set_names())
    assert "GetVersion" in body["operations"]
    assert "attributes" not in body["entitySets"][0]


def test_details_and_one_set(db: None, client: Client) -> None:
    whole = {node["name"]: node for node in _read(client, f"{STANDARD}?details=true")["entitySets"]}
    one = _read(client, f"{STANDARD}/{ORDERS}")
    assert one == whole[ORDERS] == _read(client, f"{STANDARD}/Crm.Sales.SalesOrders")
    assert one["baseType"] == "Erp.General_Documents_Document"
    assert {"name": "Lines", "entitySet": "Crm_Sales_SalesOrderLines", "backReference": "SalesOrder"} in one[
        "collections"
    ]
    customer = next(node for node in one["references"] if node["name"] == "Customer")
    assert (customer["entitySet"], customer["required"]) == ("Crm_Sales_Customers", True)
    state = next(node for node in one["attributes"] if node["name"] == "State")
    assert state["members"]["Released"] == 30
    assert "ChangeState" in one["operations"]


def test_details_tell_what_operations_take(db: None, client: Client) -> None:
    told = {
        (node["name"], node["boundTo"]): node for node in _read(client, f"{STANDARD}?details=true")["operationDetails"]
    }
    change = told["ChangeState", "documents"]
    assert [(node["name"], node["optional"]) for node in change["parameters"]] == [
        ("newState", False),
        ("userStatus", True),
    ]
    assert (change["isFunction"], told["GetVersion", ""]["isFunction"]) == (False, True)
    assert "operationDetails" not in _read(client, STANDARD)


def test_an_unknown_set_is_refused_with_near_names(db: None, client: Client) -> None:
    refused: Any = client.get(f"{STANDARD}/Crm_Sales_SalesOrder")
    assert (refused.status_code, error_of(refused)["type"]) == (400, "UnknownEntitySet")
    assert "Crm_Sales_SalesOrders" in error_of(refused)["message"]
    assert client.post(STANDARD)["Allow"] == "GET, HEAD"


def test_the_standard_model_has_an_etag(db: None, client: Client) -> None:
    first: Any = client.get(STANDARD)
    assert client.get(STANDARD, headers={"If-None-Match": first["ETag"]}).status_code == 304


def test_the_current_model_needs_a_token_and_has_custom_properties(api: Api) -> None:
    anonymous: Any = Client().get(CURRENT)
    assert (anonymous.status_code, error_of(anonymous)["type"]) == (401, "TokenMissing")
    _colour(api)
    products = f"{CURRENT}/General_Products_Products"
    (custom,) = _read(api.client, products, **_bearer(api))["customProperties"]
    assert (custom["name"], custom["code"]) == ("CustomProperty_colour", "colour")
    assert _read(api.client, products.replace(CURRENT, STANDARD))["customProperties"] == []


def test_the_current_model_has_what_the_caller_may_read(world: World, api: Api) -> None:
    reader = person("reader")
    give_role(reader, {"Crm.Sales.SalesOrders": "r"})
    mine = caller(reader)
    names = {node["name"] for node in _read(mine.client, CURRENT, **_bearer(mine))["entitySets"]}
    assert names == {ORDERS}
    hidden: Any = mine.client.get(f"{CURRENT}/General_Products_Products", headers=_bearer(mine))
    assert hidden.status_code == 400


@pytest.mark.parametrize("path", ["/api/domain/reset", "/api/domain/odata/Reset", "/api/domain/odata/reset()"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_reset_tells_every_node(api: Api, path: str, method: str) -> None:
    before = stamps.current(custom_properties.STAMP)
    answered: Any = api.client.generic(method, path, headers=_bearer(api))
    assert (answered.status_code, answered.json()) == (200, {"success": True})
    assert stamps.current(custom_properties.STAMP) > before
    assert Client().generic(method, path).status_code == 401
    assert api.client.delete(path, headers=_bearer(api))["Allow"] == "GET, POST"
