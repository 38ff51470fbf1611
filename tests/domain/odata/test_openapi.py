"""The OpenAPI document: valid, the same model as $metadata, and nothing that it describes breaks the service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import hypothesis
import pytest
import schemathesis
from django.test import Client
from hypothesis import HealthCheck
from openapi_spec_validator import OpenAPIV30SpecValidator

from domain.model.registry import repositories
from domain.odata.metadata.csdl import csdl_tree
from domain.odata.metadata.openapi import openapi_tree
from domain.odata.metadata.openapi_schemas import REFERENCE, ref
from domain.odata.operations.catalogue import operations
from tests.domain.odata.test_writing import order_body
from tests.rules.cast import World
from tests.support.api import Api

DOCUMENT = "/api/openapi.json"
#: Operations that wait, and those whose effect a read-only run must not have.
_LEFT_OUT = frozenset({"/WaitForChanges"})


def test_the_document_is_valid(db: None) -> None:
    assert [error.message for error in OpenAPIV30SpecValidator(openapi_tree()).iter_errors()] == []


def test_it_describes_every_set_type_and_operation(db: None) -> None:
    document = openapi_tree()
    for repository in repositories:
        assert {"get"} <= set(document["paths"][f"/{repository.set_name}"])
        assert f"/{repository.set_name}({{Id}})" in document["paths"]
    schema = csdl_tree()["Erp"]
    described = document["components"]["schemas"]
    for name, node in schema.items():
        if isinstance(node, dict) and node.get("$Kind") in ("EntityType", "ComplexType", "EnumType"):
            assert f"Erp.{name}" in described
        if isinstance(node, dict) and node.get("$Kind") == "EntityType":
            own = described[f"Erp.{name}"]
            members = own["allOf"][1]["properties"] if "allOf" in own else own["properties"]
            assert set(members) == {member for member in node if not member.startswith(("$", "@"))}
    for operation in operations.all():
        method = "get" if operation.is_function else "post"
        ending = f"/{operation.name}"
        assert any(method in item for path, item in document["paths"].items() if path.endswith(ending)), operation.name


@pytest.mark.parametrize("namespace", ["Crm.Sales", "General.Products", "Operations"])
def test_the_part_of_a_namespace_is_a_small_valid_document(db: None, namespace: str) -> None:
    part = Client().get(DOCUMENT, {"namespace": namespace}).json()
    assert [error.message for error in OpenAPIV30SpecValidator(part).iter_errors()] == []
    whole = openapi_tree(custom=False)
    tags = {tag["name"] for tag in part["tags"]}
    owned = {
        path: item
        for path, item in whole["paths"].items()
        if any(tags & set(node["tags"]) for name, node in item.items() if name != "parameters")
    }
    assert part["paths"] == owned
    assert len(part["components"]["schemas"]) < len(whole["components"]["schemas"]) / 2


def test_a_part_has_the_members_of_its_own_types_and_links_to_others(db: None) -> None:
    whole = openapi_tree(custom=False)["components"]["schemas"]
    part = openapi_tree(custom=False, namespace="Crm.Sales")["components"]["schemas"]
    order, base = "Erp.Crm_Sales_SalesOrder", "Erp.General_Documents_Document"
    assert list(part[order]["allOf"][1]["properties"]) == list(whole[order]["allOf"][1]["properties"])
    assert part[order]["allOf"][1]["properties"]["Customer"] == {"allOf": [ref(REFERENCE)]}
    assert list(part[base]["properties"]) == list(whole[base]["properties"])
    assert "Erp.General_Products_Product" not in part


def test_an_unknown_namespace_is_refused_and_similar_ones_are_named(db: None) -> None:
    refused: Any = Client().get(DOCUMENT, {"namespace": "Crm.Sale"})
    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "UnknownNamespace"
    assert "Crm.Sales" in refused.json()["error"]["message"]


def test_what_is_read_only_is_not_offered_for_writing(db: None) -> None:
    paths = openapi_tree()["paths"]
    for repository in repositories:
        writable = repository.access == "ReadWrite"
        assert ("patch" in paths[f"/{repository.set_name}({{Id}})"]) == writable
        assert ("post" in paths[f"/{repository.set_name}"]) == (writable and not repository.abstract)


def test_anybody_gets_the_standard_document_and_callers_the_current_one(api: Api) -> None:
    api.create(
        "Systems_Bpm_CustomProperties",
        {"Code": "colour", "Name": {"EN": "Colour"}, "EntityName": "General.Products.Products"},
    )
    anonymous: Any = Client().get(DOCUMENT)
    known: Any = api.client.get(DOCUMENT, headers={"Authorization": f"Bearer {api.token}"})
    assert (anonymous.status_code, known.status_code) == (200, 200)
    assert b"CustomProperty_colour" not in anonymous.content
    assert b"CustomProperty_colour" in known.content
    assert Client().get(DOCUMENT, headers={"If-None-Match": anonymous["ETag"]}).status_code == 304
    assert Client().get(DOCUMENT, headers={"Authorization": "Bearer x"}).status_code == 401


# --- schemathesis: random requests that the document allows -------------------------------------------------------


@pytest.fixture
def populated(api: Api, world: World) -> Api:
    """Something to read: an order with lines beside the world."""
    lines = ({"Quantity": {"Value": 3, "Unit": "pcs"}, "UnitPrice": 10.5}, {"Quantity": 1, "UnitPrice": 2})
    api.create("Crm_Sales_SalesOrders", order_body(world, *lines))
    return api


def _reads() -> Iterator[Any]:
    described: Any = schemathesis.openapi.from_dict(openapi_tree(custom=False))
    for result in described.get_all_operations():
        operation = result.ok()
        if operation.method == "get" and operation.path not in _LEFT_OUT:
            yield operation


def _run(api: Api, operation: Any, examples: int, seed: int | None) -> list[str]:
    """Requests for one operation; what came back as a server error that is a bug."""
    found: list[str] = []

    def ask(case: Any) -> None:
        path = case.formatted_path.lstrip("/")
        query = "&".join(f"{name}={quote(_text(value))}" for name, value in (case.query or {}).items())
        headers = {
            name.replace("-", "_"): str(value)
            for name, value in (case.headers or {}).items()
            if name.lower() != "authorization"
        }
        answered = api.get(f"{path}?{query}" if query else path, **headers)
        if answered.status_code >= 500 and answered.status_code != 501:
            error = answered.json()["error"]
            if error["type"] == "InternalError":
                found.append(f"{path}?{query}: {error['info']}")

    given: Any = hypothesis.given
    test = given(operation.as_strategy())(ask)
    profile = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        derandomize=seed is not None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    profile(test)()
    return found


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.django_db
def test_no_read_finds_a_bug(populated: Api) -> None:
    """Bounded: two requests for each read; `make fuzz` asks many more."""
    assert [bug for operation in _reads() for bug in _run(populated, operation, 2, seed=1)] == []


@pytest.mark.fuzz
@pytest.mark.django_db
def test_no_read_finds_a_bug_in_a_long_run(populated: Api) -> None:
    assert [bug for operation in _reads() for bug in _run(populated, operation, 100, seed=None)] == []
