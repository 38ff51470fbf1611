"""Rules as integrators meet them: written in one POST, obeyed by every way of changing data (spec 05, 5.1–5.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.entities import systems_bpm as bpm
from foundation import cache_versions
from tests.rules.cast import ORDERS, World, write_rule
from tests.rules.cast import fail as fail_action
from tests.rules.cast import warn as warn_action
from tests.support.api import Api, error_of, id_of

RULES_SET = "Systems_Bpm_UserBusinessRules"
CURRENCIES = "General.Currencies.Currencies"
STATUS = "0189a1b2-0000-7000-8000-00000000000a"

RELEASE_RULE = {
    "Code": "REL",
    "Name": {"EN": "Release only when checked"},
    "RepositoryName": "Crm.Sales.SalesOrders",
    "IsActive": True,
    "Layer": "BackEnd",
    "Events": [{"EventType": "STATECHANGING", "EventParameter": "RELEASED", "ExecutionPriority": "Normal"}],
    "Conditions": [
        {"ConditionNo": 10, "AttributeName": "$ToUserStatusId", "ComparisonType": "Equals", "Value": STATUS},
        {"ConditionNo": 20, "AttributeName": "DocumentNotes", "ComparisonType": "IsNull"},
    ],
    "Actions": [
        {"ActionNo": 10, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "Check it first."}
    ],
}
DISCOUNT_RULE: dict[str, Any] = {
    "Code": "DISC",
    "Name": "At most 25 percent",
    "RepositoryName": "Crm.Sales.SalesOrderLines",
    "IsActive": True,
    "Layer": "FrontEnd",
    "Events": [{"EventType": "ATTRIBUTECHANGING", "EventParameter": "LineCustomDiscountPercent", "Layer": "FrontEnd"}],
    "Conditions": [{"ConditionNo": 1, "AttributeName": "$NewValue", "ComparisonType": "Greater_Than", "Value": "0.25"}],
    "Actions": [
        {
            "ActionNo": 1,
            "ActionType": "FAIL",
            "Parameter1Type": "Interpolate",
            "Parameter1Value": "Line {LineNo}: {$NewValue:N2} is more than a quarter.",
        }
    ],
}


def order_body(world: World, *discounts: float) -> dict[str, Any]:
    return {
        "DocumentType@odata.bind": f"Systems_Documents_DocumentTypes({world.document_type})",
        "EnterpriseCompany@odata.bind": f"General_EnterpriseCompanies({world.company})",
        "Customer@odata.bind": f"Crm_Sales_Customers({world.customer})",
        "Lines": [
            {
                "LineNo": number,
                "Product@odata.bind": f"General_Products_Products({world.product})",
                "LineCustomDiscountPercent": discount,
            }
            for number, discount in enumerate(discounts, 1)
        ],
    }


def create_rule(api: Api, body: dict[str, Any]) -> str:
    created = api.create(RULES_SET, body)
    cache_versions.expire()  # tests run inside a transaction, whose commit would do this
    return id_of(created)


def test_one_post_creates_a_rule_and_its_children(api: Api) -> None:
    rule_id = create_rule(api, RELEASE_RULE)
    stored = api.read(f"{RULES_SET}({rule_id})?$expand=Events,Conditions($orderby=ConditionNo),Actions")
    assert [len(stored[name]) for name in ("Events", "Conditions", "Actions")] == [1, 2, 1]
    assert stored["Events"][0]["EventParameter"] == "RELEASED"
    assert stored["Conditions"][0]["AttributeName"] == "$ToUserStatusId"
    assert bpm.UserBusinessRule.objects.count() == 1


def test_what_is_wrong_with_a_rule_is_told_by_place(api: Api) -> None:
    body = {
        **RELEASE_RULE,
        "Conditions": [
            {"ConditionNo": 1, "AttributeName": "DocumentNots", "ComparisonType": "IsNull"},
            {"ConditionNo": 2, "AttributeName": "$ToState", "ComparisonType": "Equals", "Value": "SHIPPED"},
        ],
    }
    response = api.post(RULES_SET, body)
    assert response.status_code == 500
    error = error_of(response)
    assert (error["type"], error["code"]) == ("RuleInvalid", 3003)
    assert [detail["target"] for detail in error["details"]] == ["Conditions/0/AttributeName", "Conditions/1/Value"]
    assert "Did you mean DocumentNotes" in error["details"][0]["message"]
    assert not bpm.UserBusinessRule.objects.exists()
    assert not bpm.UserBusinessRuleCondition.objects.exists()


def test_a_rule_comes_in_several_requests_and_is_warned_of_until_it_is_whole(api: Api) -> None:
    rule = {name: value for name, value in DISCOUNT_RULE.items() if name not in ("Events", "Conditions", "Actions")}
    made = api.post(RULES_SET, rule)
    assert made.status_code == 201
    assert "has no event" in made["X-Warnings"]
    path = f"{RULES_SET}({id_of(json.loads(made.content))})"
    assert "neither an action" in api.post(f"{path}/Events", DISCOUNT_RULE["Events"][0])["X-Warnings"]
    assert "X-Warnings" not in api.post(f"{path}/Actions", {
        "ActionNo": 1, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "x",
    })  # fmt: skip


def test_the_layer_that_get_repository_events_names_is_accepted(api: Api) -> None:
    told = api.read(f"GetRepositoryEvents(repositoryName='{ORDERS}')")["events"]
    for number, event in enumerate(told):
        parameter = {"ATTRIBUTE": "DocumentNotes", "STATECHAN": "30"}.get(event["EventType"][:9])
        row = {"EventType": event["EventType"], "EventParameter": parameter, "Layer": event["Layer"]}
        body = {"Code": f"L{number}", "Name": "x", "RepositoryName": ORDERS, "Layer": event["Layer"], "Events": [row]}
        made = api.create(f"{RULES_SET}?$expand=Events", body)
        assert (made["Layer"], made["Events"][0]["Layer"]) == (event["Layer"], event["Layer"])


def test_get_repository_events(api: Api) -> None:
    told = api.read(f"GetRepositoryEvents(repositoryName='{ORDERS}')")
    assert told["@odata.context"]
    assert told["repositoryName"] == ORDERS
    by_name = {event["EventType"]: event for event in told["events"]}
    assert by_name["STATECHANGING"]["RequiresEventParameter"] is True
    assert by_name["COMMIT"]["EventAttributes"] is None
    response = api.get("GetRepositoryEvents(repositoryName='Crm.Sales.SalesOrder')")
    assert response.status_code == 400
    assert "Crm.Sales.SalesOrders" in error_of(response)["message"]


def test_the_discount_rule_speaks_with_and_without_a_transaction_and_in_both_models(api: Api, world: World) -> None:
    create_rule(api, DISCOUNT_RULE)
    api.create("Crm_Sales_SalesOrders", order_body(world, 0.25))
    for caller in (api, api.begin(model="common"), api.begin(model="frontend")):
        response = caller.post("Crm_Sales_SalesOrders", order_body(world, 0.25, 0.26))
        assert response.status_code == 500
        error = error_of(response)
        assert error["message"] == "Line 2: 0.26 is more than a quarter."
        assert (error["type"], error["target"]) == ("RuleFailed", "Lines/1/LineCustomDiscountPercent")


def test_a_refused_post_leaves_nothing(api: Api, world: World) -> None:
    refused = ("CurrencySign", "Like", "x*")
    write_rule(world, CURRENCIES, ["COMMIT"], conditions=[refused], actions=[fail_action("No {bad} ones.")])
    response = api.post("General_Currencies_Currencies", {"CurrencySign": "XXX", "Name": "x"})
    assert response.status_code == 500
    error = error_of(response)
    assert (error["message"], error["code"], error["type"]) == ("No {bad} ones.", 3000, "RuleFailed")
    assert api.read("General_Currencies_Currencies?$filter=CurrencySign eq 'XXX'")["value"] == []


def test_a_fail_takes_its_whole_changeset_with_it(api: Api, world: World) -> None:
    write_rule(
        world, CURRENCIES, ["COMMIT"], conditions=[("CurrencySign", "Equals", "XXX")],
        actions=[fail_action("Not this one.")],
    )  # fmt: skip
    requests = [
        {"id": str(number), "method": "POST", "url": "General_Currencies_Currencies", "atomicityGroup": "g",
         "body": {"CurrencySign": sign, "Name": sign}}
        for number, sign in enumerate(("USD", "XXX", "GBP"), 1)
    ]  # fmt: skip
    response = api.post("$batch", {"requests": requests})
    assert response.status_code == 200
    assert "Not this one." in response.content.decode()
    signs = [row["CurrencySign"] for row in api.read("General_Currencies_Currencies?$select=CurrencySign")["value"]]
    assert set(signs).isdisjoint({"USD", "XXX", "GBP"})


def test_warnings_come_back_beside_the_answer(api: Api, world: World) -> None:
    write_rule(world, CURRENCIES, ["CLIENTCOMMIT"], actions=[warn_action("Rates for {CurrencySign}?")])
    response = api.post("General_Currencies_Currencies", {"CurrencySign": "USD", "Name": "Dollar"})
    assert response.status_code == 201
    assert response["X-Warnings"] == "Rates for USD?"


def test_releasing_over_http_is_refused_until_the_condition_is_met(api: Api, world: World) -> None:
    create_rule(
        api,
        {
            **RELEASE_RULE,
            "Conditions": [{"ConditionNo": 1, "AttributeName": "DocumentNotes", "ComparisonType": "IsNull"}],
        },
    )
    order = id_of(api.create("Crm_Sales_SalesOrders", order_body(world, 0)))
    release = {"newState": "Released"}
    response = api.post(f"Crm_Sales_SalesOrders({order})/ChangeState", release)
    assert (response.status_code, error_of(response)["message"]) == (500, "Check it first.")
    assert api.read(f"Crm_Sales_SalesOrders({order})?$select=State")["State"] == "New"
    assert api.patch(f"Crm_Sales_SalesOrders({order})", {"DocumentNotes": "checked"}).status_code in (200, 204)
    response = api.post(f"Crm_Sales_SalesOrders({order})/ChangeState", release)
    assert response.status_code in (200, 204), response.content
    assert api.read(f"Crm_Sales_SalesOrders({order})?$select=State")["State"] == "Released"


@pytest.mark.parametrize("field, value", [("RepositoryName", "No.Such"), ("Layer", "Sideways"), ("IsActive", "maybe")])
def test_bad_fields_are_refused_and_never_an_internal_error(api: Api, field: str, value: str) -> None:
    response = api.post(RULES_SET, {**RELEASE_RULE, field: value})
    assert response.status_code in (400, 500)
    assert error_of(response)["type"] != "InternalError", json.dumps(error_of(response))
