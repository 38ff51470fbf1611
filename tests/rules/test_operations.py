"""Spec 05, 5.1: GetRepositoryEvents tells the catalogue, in its exact shape."""

from __future__ import annotations

import pytest

from domain.dataset.dataset import Dataset
from domain.events.types import event_types
from domain.model.registry import repositories
from domain.model.rule_enums import USER_BUSINESS_RULE_EVENT_TYPE
from domain.odata.operations.catalogue import OperationCall, operations
from foundation import errors
from identity.context import system_context
from rules.operations import repository_events
from tests.rules.cast import LINES, ORDERS, PRODUCTS

COMMITS = {"CREATENEW", "COMMIT", "CLIENTCOMMIT", "COMMITTED", "CLIENTCOMMITTED"}
ATTRIBUTES = {"ATTRIBUTECHANGING", "ATTRIBUTECHANGED"}
ROOT = {"AGGREGATECLIENTCOMMIT", "AGGREGATECLIENTCOMMITTED"}
DOCUMENT = {"STATECHANGING", "STATECHANGED", "VOIDING", "BEFORERECALCULATE"}


@pytest.mark.parametrize(
    "repository, expected",
    [
        (ORDERS, COMMITS | ATTRIBUTES | ROOT | DOCUMENT),
        (LINES, COMMITS | ATTRIBUTES | {"BEFORERECALCULATE"}),
        (PRODUCTS, COMMITS | ATTRIBUTES | ROOT),
        ("General.Documents.DocumentAmounts", COMMITS | ATTRIBUTES | {"BEFORERECALCULATE"}),
    ],
)
def test_headers_lines_and_others_have_different_events(repository: str, expected: set[str]) -> None:
    told = repository_events(repositories[repository], "en")
    assert told["repositoryName"] == repository
    assert {event["EventType"] for event in told["events"]} == expected


def test_the_exact_shape() -> None:
    by_name = {event["EventType"]: event for event in repository_events(repositories[ORDERS], "en")["events"]}
    assert by_name["COMMIT"] == {
        "EventType": "COMMIT",
        "Description": "The object is about to be saved; saving can still be refused.",
        "Layer": "BackEnd",
        "RequiresEventParameter": False,
        "EventParameterDescription": None,
        "EventAttributes": None,
    }
    changing = by_name["STATECHANGING"]
    assert list(changing) == list(by_name["COMMIT"])
    assert changing["RequiresEventParameter"] is True
    assert "RELEASED" in changing["EventParameterDescription"]
    names = [attribute["Name"] for attribute in changing["EventAttributes"]]
    assert names == ["$FromState", "$ToState", "$FromUserStatusId", "$ToUserStatusId"]
    assert all(attribute["Description"] for attribute in changing["EventAttributes"])
    assert {name: event["Layer"] for name, event in by_name.items() if event["Layer"] != "BackEnd"} == {
        "CREATENEW": "Common",
        "ATTRIBUTECHANGING": "FrontEnd",
        "ATTRIBUTECHANGED": "FrontEnd",
        "BEFORERECALCULATE": "FrontEnd",
    }
    assert [a["Name"] for a in by_name["ATTRIBUTECHANGING"]["EventAttributes"]] == ["$NewValue", "$OldValue"]
    assert [a["Name"] for a in by_name["VOIDING"]["EventAttributes"]] == ["$VoidReason"]


def test_every_shipped_repository_has_events_unless_callers_may_only_read_it() -> None:
    for repository in repositories:
        told = {event["EventType"] for event in repository_events(repository, "en")["events"]}
        if repository.access == "ReadOnly":
            assert told == set(), repository.name
            continue
        assert told >= COMMITS, repository.name
        assert (told >= ROOT) is repository.is_root, repository.name


def test_the_catalogue_is_the_model_s_enum() -> None:
    assert {event.name for event in event_types} == set(USER_BUSINESS_RULE_EVENT_TYPE.members)


def test_the_operation_answers_and_names_near_repositories(db: None) -> None:
    operation = operations.unbound("GetRepositoryEvents")
    assert operation is not None
    context = system_context()
    call = OperationCall(context, Dataset(context), {"repositoryName": ORDERS})
    assert operation.run(call).value["repositoryName"] == ORDERS
    wrong = OperationCall(context, Dataset(context), {"repositoryName": "Crm.Sales.SalesOrder"})
    with pytest.raises(errors.BadRequest) as caught:
        operation.run(wrong)
    assert "Crm.Sales.SalesOrders" in caught.value.message
