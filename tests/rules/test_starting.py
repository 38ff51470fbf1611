"""Rules that users start by hand: StartRule, and the buttons of the admin (spec 10.4)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client

from identity.models import User
from tests.attacks.access import save_rule
from tests.domain.security.conftest import caller, give_role, person
from tests.rules.cast import PRODUCTS, World, dataset
from tests.support.api import Api, error_of

RULE: dict[str, Any] = {
    "Code": "CHECK",
    "Name": {"EN": "Check it", "DE": "Prüfen"},
    "RepositoryName": PRODUCTS,
    "IsActive": True,
    "UserStartable": True,
    "Conditions": [{"ConditionNo": 10, "AttributeName": "PartNumber", "ComparisonType": "Equals", "Value": "P1"}],
    "Actions": [
        {
            "ActionNo": 10,
            "ActionType": "SETVALUE",
            "Parameter1Type": "Attribute",
            "Parameter1Value": "Description",
            "Parameter2Type": "Interpolate",
            "Parameter2Value": "Checked {PartNumber}",
        },
        {"ActionNo": 20, "ActionType": "WARNING", "Parameter1Type": "Constant", "Parameter1Value": "Look at it."},
    ],
}
RULES = "Systems_Bpm_UserBusinessRules"


def make_rule(api: Api, **values: Any) -> str:
    return str(api.create(RULES, {**RULE, **values})["Id"])


def product(world: World) -> str:
    return f"General_Products_Products({world.product})"


def notes(world: World) -> Any:
    found = dataset(world.context).load(PRODUCTS, world.product)
    assert found is not None
    return (found.values["Description"] or {}).get("EN")


@pytest.mark.parametrize("by", ["code", "id"])
def test_a_rule_is_started_by_its_code_or_id(api: Api, world: World, by: str) -> None:
    rule = make_rule(api)
    answer = api.post(f"{product(world)}/StartRule", {"rule": "CHECK" if by == "code" else rule})
    assert answer.status_code == 200, answer.content
    body = json.loads(answer.content)
    assert (body["fired"], answer["X-Warnings"]) == (True, "Look at it.")
    assert notes(world) == "Checked P1"


def test_conditions_that_do_not_hold_let_nothing_happen(api: Api, world: World) -> None:
    make_rule(api, Conditions=[{**RULE["Conditions"][0], "Value": "P2"}])
    answer = api.post(f"{product(world)}/StartRule", {"rule": "CHECK"})
    assert (answer.status_code, json.loads(answer.content)["fired"]) == (200, False)
    assert notes(world) is None


def test_a_refusal_changes_nothing_and_is_the_rules(api: Api, world: World) -> None:
    fail = {"ActionNo": 30, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "Not today."}
    make_rule(api, Actions=[*RULE["Actions"], fail])
    error = error_of(api.post(f"{product(world)}/StartRule", {"rule": "CHECK"}))
    assert (error["type"], error["message"]) == ("RuleFailed", "Not today.")
    assert notes(world) is None


def test_a_script_runs_on_the_entity(api: Api, world: World) -> None:
    script = "subject.Description = 'by ' + subject.PartNumber;"
    make_rule(api, Actions=[], ScriptLanguage="JavaScript", ScriptText=script)
    answer = api.post(f"{product(world)}/StartRule", {"rule": "CHECK"})
    assert answer.status_code == 200, answer.content
    assert notes(world) == "by P1"


def test_within_a_transaction_it_is_saved_with_the_transaction(api: Api, world: World) -> None:
    make_rule(api)
    for commit, expected in ((False, None), (True, "Checked P1")):
        id = api.post("BeginTransaction", {}).content.decode()
        assert api.post(f"{product(world)}/StartRule", {"rule": "CHECK"}, TransactionId=id).status_code == 200
        assert notes(world) is None
        assert api.post("EndTransaction", {"commit": commit}, TransactionId=id).status_code == 204
        assert notes(world) == expected


@pytest.mark.parametrize(
    "values",
    [
        {"UserStartable": False},
        {"IsActive": False},
        {"RepositoryName": "General.Products.ProductGroups", "Conditions": [], "Actions": RULE["Actions"][1:]},
    ],
    ids=["for events only", "inactive", "of other entities"],
)  # fmt: skip
def test_what_users_may_not_start_is_refused(api: Api, world: World, values: dict[str, Any]) -> None:
    make_rule(api, **values)
    error = error_of(api.post(f"{product(world)}/StartRule", {"rule": "CHECK"}))
    assert (error["type"], error["target"]) == ("RuleNotStartable", "rule")
    assert error["message"] == (
        "The rule CHECK cannot be started here: General.Products.Products has no active rule of that code or id that"
        " users start."
    )


def test_a_rule_that_needs_its_event_is_no_rule_to_start(api: Api) -> None:
    body = {
        **RULE,
        "Events": [{"EventType": "ATTRIBUTECHANGING", "EventParameter": "Description"}],
        "Conditions": [{"ConditionNo": 10, "AttributeName": "$NewValue", "ComparisonType": "Equals", "Value": "x"}],
    }
    error = error_of(api.post(RULES, body))
    assert "$NewValue" in error["message"]
    assert api.post(RULES, {**body, "UserStartable": False}).status_code == 201


def test_a_parameter_is_needed(api: Api, world: World) -> None:
    assert api.post(f"{product(world)}/StartRule", {}).status_code == 400
    assert api.post(f"{product(world)}/StartRule", {"rule": 7}).status_code == 400


def test_the_caller_needs_the_right_to_change_the_entity(api: Api, world: World) -> None:
    make_rule(api)
    for letters, status in (("r", 403), ("ru", 200)):
        clerk = person(f"clerk {letters}")
        give_role(clerk, {"General.Products.*": letters})
        answer = caller(clerk).post(f"{product(world)}/StartRule", {"rule": "CHECK"})
        assert answer.status_code == status, answer.content
    reader = person("reader")
    give_role(reader, {"General.Products.*": "ru"}, {PRODUCTS: "PartNumber eq 'P2'"})
    assert caller(reader).post(f"{product(world)}/StartRule", {"rule": "CHECK"}).status_code == 404


def test_the_metadata_and_the_description_have_it(api: Api) -> None:
    document = json.loads(api.get("$metadata?$format=json").content)
    overloads = document["Erp"]["StartRule"]
    assert overloads[0]["$Kind"] == "Action"
    assert [parameter["$Name"] for parameter in overloads[0]["$Parameter"]][-1:] == ["rule"]
    assert list(document["Erp"]["StartRuleResult"])[-2:] == ["rule", "fired"]
    paths = Client().get("/api/openapi.json").json()["paths"]
    assert any(path.startswith("/General_Products_Products(") and path.endswith("StartRule") for path in paths)


# --- admin ------------------------------------------------------------------------------------------------------------


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def button(client: Client, world: World) -> tuple[str, dict[str, str]] | None:
    """The address and fields of the button on the product's page."""
    page = client.get(f"/admin/domain/product/{world.product}/change/").content.decode()
    form = re.search(r'<li class="page-button"><form method="post" action="([^"]+)">(.*?)</form>', page, re.S)
    if form is None:
        return None
    assert "Start: Check it" in form[2]
    return form[1], dict(re.findall(r'name="(repository|entity)" value="([^"]+)"', form[2]))


def test_a_button_starts_the_rule_and_its_messages_are_shown(api: Api, world: World) -> None:
    make_rule(api)
    boss = signed_in(User.objects.get(login="anna"))
    found = button(boss, world)
    assert found is not None
    page = boss.post(*found, follow=True).content.decode()
    assert "The rule Check it has run." in page
    assert "Look at it." in page
    assert notes(world) == "Checked P1"
    api.patch(product(world), {"PartNumber": "P7"})
    assert "The conditions of the rule Check it do not hold." in boss.post(*found, follow=True).content.decode()
    url, fields = found
    assert boss.get(url).status_code == 405
    assert boss.post(url, {**fields, "entity": "x"}).status_code == 404
    assert boss.post(url, {**fields, "repository": "Nope"}).status_code == 404


def test_who_may_not_change_the_entity_has_no_button(api: Api, world: World) -> None:
    make_rule(api)
    found = button(signed_in(User.objects.get(login="anna")), world)
    assert found is not None
    reader = person("reader")
    give_role(reader, {"General.Products.*": "r"})
    client = signed_in(reader)
    assert button(client, world) is None
    assert client.post(*found).status_code == 403
    clerk = person("clerk")
    give_role(clerk, {"General.Products.*": "ru"})
    client = signed_in(clerk)
    assert button(client, world) is not None
    assert "The rule Check it has run." in client.post(*found, follow=True).content.decode()


def test_a_refusal_is_shown_on_the_page(api: Api, world: World) -> None:
    save_rule(api, "STOP", PRODUCTS, "COMMIT", ("FAIL", "Nothing changes."))
    make_rule(api)
    boss = signed_in(User.objects.get(login="anna"))
    found = button(boss, world)
    assert found is not None
    assert "Nothing changes." in boss.post(*found, follow=True).content.decode()
    assert notes(world) is None
