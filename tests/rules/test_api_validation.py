"""Every message of spec 05, 5.2, over HTTP: the tables of test_validation, posted as integrators post them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from domain.entities import systems_bpm as bpm
from domain.model.registry import repositories
from tests.rules import test_validation as validation
from tests.rules.cast import PRODUCTS, fail, warn
from tests.support.api import Api, error_of

SET = "Systems_Bpm_UserBusinessRules"


def table(test: Any) -> Sequence[tuple[Any, ...]]:
    """The parameter sets of a parametrized test."""
    rows: Sequence[tuple[Any, ...]] = test.pytestmark[0].args[1]
    return rows


def body(
    repository: str, events: Sequence[Any], conditions: Sequence[Any] = (), actions: Sequence[Any] = ()
) -> dict[str, Any]:
    """The JSON of a rule written as in tests.rules.cast.write_rule."""

    def action(number: int, type: str, *parameters: tuple[str, str | None]) -> Mapping[str, Any]:
        given: dict[str, str | None] = {f"Parameter{i}Type": kind for i, (kind, _) in enumerate(parameters, 1)}
        given |= {f"Parameter{i}Value": value for i, (_, value) in enumerate(parameters, 1)}
        return {"ActionNo": number, "ActionType": type, **given}

    pairs = [event if isinstance(event, tuple) else (event, None) for event in events]
    return {
        "Code": "API",
        "Name": {"EN": "A rule"},
        "RepositoryName": repository,
        "IsActive": True,
        "Events": [{"EventType": type, "EventParameter": parameter} for type, parameter in pairs],
        "Conditions": [
            {"ConditionNo": number, **dict(zip(("AttributeName", "ComparisonType", "Value"), given, strict=False))}
            for number, given in enumerate(conditions, 1)
        ],
        "Actions": [action(number, *given) for number, given in enumerate(actions, 1)],
    }


def refused(api: Api, rule: dict[str, Any], target: str, words: str) -> None:
    response = api.post(SET, rule)
    assert response.status_code == 500
    error = error_of(response)
    assert (error["type"], error["code"], error["target"]) == ("RuleInvalid", 3003, target)
    assert words in error["message"]
    assert error["details"][0]["target"] == target
    for model in (bpm.UserBusinessRule, bpm.UserBusinessRuleEvent, bpm.UserBusinessRuleAction):
        assert not model.objects.exists()


@pytest.mark.parametrize("repository, event, target, words", table(
    validation.test_events_belong_to_the_repository_and_have_a_parameter_exactly_when_required
))  # fmt: skip
def test_events(api: Api, repository: str, event: Any, target: str, words: str) -> None:
    refused(api, body(repository, [event], actions=[fail()]), target, words)


@pytest.mark.parametrize("repository, event, condition, target, words", table(
    validation.test_conditions_name_what_exists_and_values_parse
))  # fmt: skip
def test_conditions(api: Api, repository: str, event: Any, condition: Any, target: str, words: str) -> None:
    rule = body(repository, [event], [("Id", "Not_IsNull"), condition], [fail()])
    refused(api, rule, f"Conditions/1/{target}", words)


@pytest.mark.parametrize("action, target, words", table(validation.test_action_parameters_fit_the_action))
def test_actions(api: Api, action: Any, target: str, words: str) -> None:
    refused(api, body(PRODUCTS, ["COMMIT"], actions=[warn("fine"), action]), f"Actions/1/{target}", words)


# --- GetRepositoryEvents ------------------------------------------------------------------------------------------

MEMBERS = {
    "EventType", "Description", "Layer", "RequiresEventParameter", "EventParameterDescription", "EventAttributes",
}  # fmt: skip
ALL = {"CREATENEW", "COMMIT", "CLIENTCOMMIT", "COMMITTED", "CLIENTCOMMITTED"}
ROOTS = {"AGGREGATECLIENTCOMMIT", "AGGREGATECLIENTCOMMITTED"}
HEADERS = {"STATECHANGING", "STATECHANGED", "VOIDING"}


def test_every_shipped_repository_tells_its_events_in_the_exact_shape(api: Api) -> None:
    for repository in repositories:
        told = api.read(f"GetRepositoryEvents(repositoryName='{repository.name}')")
        assert list(told) == ["@odata.context", "repositoryName", "events"]
        assert told["repositoryName"] == repository.name
        names = {event["EventType"] for event in told["events"]}
        if repository.access == "ReadOnly":
            assert names == set(), repository.name
            continue
        assert names >= ALL, repository.name
        assert (names >= ROOTS) is (repository.owner is None), repository.name
        assert (names >= HEADERS) is repository.is_document, repository.name
        assert not (names & HEADERS and repository.owner is not None)
        for event in told["events"]:
            assert set(event) == MEMBERS
            assert event["Layer"] in ("Common", "FrontEnd", "BackEnd")
            assert event["RequiresEventParameter"] is (event["EventParameterDescription"] is not None)
            for attribute in event["EventAttributes"] or []:
                assert set(attribute) == {"Name", "Description"}
                assert attribute["Name"].startswith("$")


def test_descriptions_are_in_the_caller_s_language(api: Api) -> None:
    path = "GetRepositoryEvents(repositoryName='Crm.Sales.SalesOrders')"
    english, bulgarian = api.read(path), api.read(path, Accept_Language="bg")
    for one, other in zip(english["events"], bulgarian["events"], strict=True):
        assert one["EventType"] == other["EventType"]
        assert one["Description"] != other["Description"]


@pytest.mark.parametrize("name, near", [
    ("Crm.Sales.SalesOrder", "Crm.Sales.SalesOrders"),
    ("General.Products.Product", "General.Products.Products"),
    ("Systems.Bpm.UserBusinesRules", "Systems.Bpm.UserBusinessRules"),
])  # fmt: skip
def test_an_unknown_repository_is_told_with_near_names(api: Api, name: str, near: str) -> None:
    response = api.get(f"GetRepositoryEvents(repositoryName='{name}')")
    assert response.status_code == 400
    assert near in error_of(response)["message"]
