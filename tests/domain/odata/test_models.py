"""The model for the pages under /api/, and the reset of its caches."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from domain.model import custom_properties
from domain.model.registry import repositories
from foundation import cache_versions
from tests.domain.security.conftest import caller, give_role, person
from tests.support.api import Api, error_of

SITE_STANDARD = "/api/model/standard.json"
SITE_CURRENT = "/api/model/current.json"
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


def test_the_pages_model_has_sets_operations_and_former_names(db: None, client: Client) -> None:
    body = _read(client, SITE_STANDARD)
    sets = {node["name"]: node for node in body["entitySets"]}
    assert set(sets) == set(repositories.set_names())
    order = sets[ORDERS]
    assert order["baseType"] == "Erp.General_Documents_Document"
    lines = {"name": "Lines", "entitySet": "Crm_Sales_SalesOrderLines", "backReference": "SalesOrder"}
    assert lines in order["collections"]
    customer = next(node for node in order["references"] if node["name"] == "Customer")
    assert (customer["entitySet"], customer["required"]) == ("Crm_Sales_Customers", True)
    state = next(node for node in order["attributes"] if node["name"] == "State")
    assert state["members"]["Released"] == 30
    assert "ChangeState" in order["operations"]


def test_the_pages_model_tells_what_operations_take(db: None, client: Client) -> None:
    told = {(node["name"], node["boundTo"]): node for node in _read(client, SITE_STANDARD)["operationDetails"]}
    change = told["ChangeState", "documents"]
    assert [(node["name"], node["optional"]) for node in change["parameters"]] == [
        ("newState", False),
        ("userStatus", True),
    ]
    assert (change["isFunction"], told["GetVersion", ""]["isFunction"]) == (False, True)


def test_the_pages_own_model_needs_a_token_and_has_custom_properties(api: Api) -> None:
    anonymous: Any = Client().get(SITE_CURRENT)
    assert (anonymous.status_code, error_of(anonymous)["type"]) == (401, "TokenMissing")
    assert Client().post(SITE_STANDARD)["Allow"] == "GET, HEAD"
    _colour(api)

    def customs(path: str) -> list[Any]:
        sets = _read(api.client, path, **_bearer(api))["entitySets"]
        found: list[Any] = next(node for node in sets if node["name"] == "General_Products_Products")[
            "customProperties"
        ]
        return found

    (custom,) = customs(SITE_CURRENT)
    assert (custom["name"], custom["code"]) == ("CustomProperty_colour", "colour")
    assert customs(SITE_STANDARD) == []


@pytest.mark.parametrize("path", ["/api/domain/reset", "/api/domain/odata/Reset", "/api/domain/odata/reset()"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_reset_tells_every_node(api: Api, path: str, method: str) -> None:
    before = cache_versions.current(custom_properties.CACHE_VERSION)
    answered: Any = api.client.generic(method, path, headers=_bearer(api))
    assert (answered.status_code, answered.json()) == (200, {"success": True})
    assert cache_versions.current(custom_properties.CACHE_VERSION) > before
    assert Client().generic(method, path).status_code == 401
    assert api.client.delete(path, headers=_bearer(api))["Allow"] == "GET, POST"


@pytest.mark.parametrize("path", ["/api/domain/reset", "/api/domain/odata/Reset"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_reset_is_for_those_who_may_change_the_model(api: Api, path: str, method: str) -> None:
    """Others could make all processes work at rendering documents."""
    user = person("mallory")
    give_role(user, {"*": "crud"})
    before = cache_versions.current(custom_properties.CACHE_VERSION)
    refused: Any = Client().generic(method, path, headers=_bearer(caller(user)))
    assert (refused.status_code, error_of(refused)["type"]) == (403, "PermissionDenied")
    assert cache_versions.current(custom_properties.CACHE_VERSION) == before
    give_role(user, {"Systems.Bpm.CustomProperties": "ru"})
    assert Client().generic(method, path, headers=_bearer(caller(user))).status_code == 200
