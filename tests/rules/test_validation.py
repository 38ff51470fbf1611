"""Spec 05, 5.2 "Validated when saved": every mistake is refused, by name and place, and all of them at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from django.core import checks as system_checks
from django.core.management import CommandError, call_command

from domain.entities import systems_bpm as bpm
from foundation import cache_versions, errors
from tests.rules.cast import LINES, ORDERS, PRODUCTS, RULES, World, dataset, fail, set_value, warn, write_rule
from tests.support.api import Api, error_of

NO_CONDITIONS: Sequence[Any] = ()
STATE = ("STATECHANGING", "RELEASED")
DISCOUNT = ("ATTRIBUTECHANGING", "LineCustomDiscountPercent")


def refusal(world: World, *args: Any, **kwargs: Any) -> errors.Refused:
    with pytest.raises(errors.Refused) as caught:
        write_rule(world, *args, **kwargs)
    assert caught.value.code is errors.RULE_INVALID
    assert not bpm.UserBusinessRule.objects.exists()
    return caught.value


# --- events -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "repository, event, target, words",
    [
        ("Crm.Sales.SalesOrder", "COMMIT", "RepositoryName", "Did you mean Crm.Sales.SalesOrders"),
        (PRODUCTS, STATE, "Events/0/EventType", "General.Products.Products has no event STATECHANGING"),
        (LINES, STATE, "Events/0/EventType", "no event STATECHANGING"),
        (LINES, "AGGREGATECLIENTCOMMIT", "Events/0/EventType", "no event AGGREGATECLIENTCOMMIT"),
        (PRODUCTS, "VOIDING", "Events/0/EventType", "no event VOIDING"),
        (PRODUCTS, "BEFORERECALCULATE", "Events/0/EventType", "no event BEFORERECALCULATE"),
        (ORDERS, "STATECHANGING", "Events/0/EventParameter", "needs a parameter"),
        (ORDERS, ("STATECHANGING", "SHIPPED"), "Events/0/EventParameter", "'SHIPPED' is not a parameter"),
        (
            ORDERS,
            ("STATECHANGING", "60"),
            "Events/0/EventParameter",
            "'60' is not one of Planned, FirmPlanned, Released",
        ),
        (ORDERS, ("STATECHANGED", "NEW"), "Events/0/EventParameter", "'NEW' is not a parameter"),
        (ORDERS, ("COMMIT", "RELEASED"), "Events/0/EventParameter", "takes no parameter"),
        (PRODUCTS, ("ATTRIBUTECHANGED", "Colour"), "Events/0/EventParameter", "has no attribute 'Colour'"),
        (PRODUCTS, "ATTRIBUTECHANGING", "Events/0/EventParameter", "needs a parameter"),
    ],
)
def test_events_belong_to_the_repository_and_have_a_parameter_exactly_when_required(
    world: World, repository: str, event: Any, target: str, words: str
) -> None:
    error = refusal(world, repository, [event], actions=[fail()])
    assert error.target == target
    assert words in error.message


@pytest.mark.parametrize(
    "events, name",
    [
        (["COMMIT", "CLIENTCOMMIT", "COMMIT"], "COMMIT"),
        ([("STATECHANGING", "RELEASED"), ("STATECHANGING", "30")], "STATECHANGING Released"),
    ],
)
def test_an_event_stands_in_a_rule_once(world: World, events: list[Any], name: str) -> None:
    error = refusal(world, ORDERS, events, actions=[fail()])
    assert error.target == f"Events/{len(events) - 1}/EventType"
    assert f"has the event {name} already" in error.message
    write_rule(world, ORDERS, [("STATECHANGING", "RELEASED"), ("STATECHANGING", "CLOSED")], actions=[fail()])


def test_the_numbers_of_actions_are_their_order(world: World, api: Api) -> None:
    body: dict[str, Any] = {
        "Code": "TWICE",
        "Name": {"EN": "x"},
        "RepositoryName": ORDERS,
        "Layer": "BackEnd",
        "Events": [{"EventType": "COMMIT", "Layer": "BackEnd"}],
        "Actions": [{"ActionNo": number, "ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "x"}
                    for number in (10, 20, 10)],
    }  # fmt: skip
    error = error_of(api.post("Systems_Bpm_UserBusinessRules", body))
    assert (error["type"], error["target"]) == ("RuleInvalid", "Actions/2/ActionNo")
    for action in body["Actions"]:
        del action["ActionNo"]
    api.create("Systems_Bpm_UserBusinessRules", body)


@pytest.mark.parametrize(
    "repository, event, rule_layer, event_layer, target, words",
    [
        (PRODUCTS, "COMMIT", "BackEnd", "FrontEnd", "Events/0/Layer", "COMMIT has the layer BackEnd, not FrontEnd"),
        (PRODUCTS, "COMMIT", "BackEnd", "Common", "Events/0/Layer", "COMMIT has the layer BackEnd, not Common"),
        (PRODUCTS, "COMMIT", "FrontEnd", "BackEnd", "Layer", "COMMIT has the layer BackEnd, not FrontEnd"),
        (ORDERS, STATE, "FrontEnd", "FrontEnd", "Events/0/Layer", "STATECHANGING has the layer BackEnd"),
    ],
)
def test_a_layer_that_the_event_does_not_have_is_refused_with_those_it_has(
    world: World, repository: str, event: Any, rule_layer: str, event_layer: str, target: str, words: str
) -> None:
    name, *parameter = event if isinstance(event, tuple) else (event,)
    given = {"EventType": name, "Layer": event_layer} | ({"EventParameter": parameter[0]} if parameter else {})
    error = refusal(world, repository, [given], actions=[fail()], Layer=rule_layer)
    assert (error.target, words in error.message) == (target, True), error.message


@pytest.mark.parametrize("layer", ["FrontEnd", "BackEnd", "Common"])
@pytest.mark.parametrize("event", ["CREATENEW", DISCOUNT, "BEFORERECALCULATE"])
def test_events_of_other_layers_take_any(world: World, event: Any, layer: str) -> None:
    name, *parameter = event if isinstance(event, tuple) else (event,)
    given = {"EventType": name, "Layer": layer} | ({"EventParameter": parameter[0]} if parameter else {})
    write_rule(world, LINES, [given], actions=[fail()], Layer=layer)


def test_a_common_rule_may_have_events_of_every_layer(world: World) -> None:
    write_rule(world, ORDERS, ["COMMIT", "CREATENEW", "BEFORERECALCULATE"], actions=[warn("w")], Layer="Common")


def test_what_callers_may_only_read_has_no_events(world: World) -> None:
    error = refusal(world, "General.Documents.DocumentStateChanges", ["COMMIT"], actions=[warn("w")])
    assert "has no event COMMIT" in error.message


@pytest.mark.parametrize("attribute", ["Id", "DisplayText", "ObjectVersion", "AggregateLastUpdateTimeUtc"])
def test_an_event_of_an_attribute_that_nobody_sets_is_refused(world: World, attribute: str) -> None:
    assert f"nobody sets {attribute}" in refusal(world, PRODUCTS, [("ATTRIBUTECHANGED", attribute)]).message


# --- rules that can do nothing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "conditions",
    [
        [("PartNumber", "IsNull"), ("PartNumber", "Equals", "P1")],
        [("PartNumber", "IsNull"), ("Name", "Not_IsNull"), ("partnumber", "Not_IsNull")],
        [("PartNumber", "Like", "a*"), ("PartNumber", "IsNull")],
        [("PartNumber", "Equals", "P1"), ("PartNumber", "Equals", "P2")],
        [("PartNumber", "Equals", "P1"), ("PartNumber", "Like", "a*")],
        [("Name", "Equals", "x"), ("Name", "Not_Equals", "x")],
        [("ScrapRate", "Equals", "0.3"), ("ScrapRate", "Greater_Than", "0.3")],
        [("ScrapRate", "Greater_Than", "0.3"), ("ScrapRate", "Less_Than_Or_Equal", "0.3")],
        [("ScrapRate", "Less_Than", "0.2"), ("ScrapRate", "Greater_Than", "0.3")],
        [("ProductGroup.Code", "IsNull"), ("ProductGroup.Code", "Equals", "G1")],
    ],
)
def test_conditions_that_never_hold_together_are_refused(world: World, conditions: list[tuple[str, ...]]) -> None:
    error = refusal(world, PRODUCTS, ["COMMIT"], conditions=conditions, actions=[fail()])
    assert error.target == f"Conditions/{len(conditions) - 1}"
    assert "never hold together" in error.message


@pytest.mark.parametrize(
    "conditions",
    [
        [("PartNumber", "IsNull"), ("PartNumber", "Not_Equals", "P1")],
        [("Name", "Equals", "Chair"), ("Name", "Equals", "Стол")],
        [("ScrapRate", "Greater_Than_Or_Equal", "0.3"), ("ScrapRate", "Less_Than_Or_Equal", "0.3")],
        [("ScrapRate", "Greater_Than", "0.2"), ("ScrapRate", "Less_Than", "0.3")],
        [("PartNumber", "Equals", "P1"), ("PartNumber", "Like", "p*"), ("ShortName", "IsNull")],
    ],
)
def test_conditions_that_may_hold_together_are_saved(world: World, conditions: list[tuple[str, ...]]) -> None:
    assert warnings_of_rule(world, PRODUCTS, ["COMMIT"], conditions=conditions, actions=[fail()]) == []


def test_a_state_that_the_event_does_not_tell_is_refused_or_warned_of(world: World) -> None:
    other = [("$ToState", "Equals", "Completed")]
    assert "never hold together" in refusal(world, ORDERS, [STATE], conditions=other, actions=[fail()]).message
    events = [STATE, ("STATECHANGING", "COMPLETED")]
    (warning,) = warnings_of_rule(world, ORDERS, events, conditions=other, actions=[fail()])
    assert "never acts on STATECHANGING Released" in warning


def test_braces_in_a_constant_give_a_warning(world: World) -> None:
    def warned(kind: str | None, text: str) -> list[str]:
        return warnings_of_rule(world, PRODUCTS, ["COMMIT"], actions=[("WARNING", (kind, text))])

    (warning,) = warned("Constant", "{PartNumber} is new")
    assert "uses {PartNumber} is new as it is" in warning
    assert warned("Constant", '{"a": 1}') == warned(None, "{PartNumber} is new") == []


def test_a_template_without_a_type_is_checked(world: World) -> None:
    misspelt = ("WARNING", (None, "{PartNumbr} is new"))
    assert "PartNumbr" in refusal(world, PRODUCTS, ["COMMIT"], actions=[misspelt]).message


def warnings_of_rule(world: World, *args: Any, **kwargs: Any) -> list[str]:
    """What the commit of a rule warns of."""
    ds = dataset(world.context)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.rules.cast.dataset", lambda context: ds)
        write_rule(world, *args, **kwargs)
    return ds.warnings


SCRIPT = {"ScriptLanguage": "JavaScript", "ScriptText": "1"}


@pytest.mark.parametrize(
    "events, actions, values, words",
    [
        ([], [warn("w")], {}, ["has no event"]),
        (["COMMIT"], [], {}, ["neither an action nor a script"]),
        ([], [], {"IsActive": False}, ["has no event", "neither an action nor a script"]),
        (["COMMIT"], [], SCRIPT, []),
        ([], [warn("w")], {"UserStartable": True}, []),
        (["COMMITTED"], [fail()], {}, ["FAIL of the rule", "too late"]),
        (["CLIENTCOMMITTED"], [set_value("ShortName", "x")], {}, []),
        ([("ATTRIBUTECHANGED", "ShortName")], [warn("w")], {}, []),
    ],
)
def test_a_rule_that_is_likely_a_mistake_is_saved_with_a_warning(
    world: World, events: list[Any], actions: list[Any], values: dict[str, Any], words: list[str]
) -> None:
    told = " ".join(warnings_of_rule(world, PRODUCTS, events, actions=actions, **values))
    assert all(each in told for each in words)
    assert bool(told) is bool(words)


def test_an_attribute_that_callers_cannot_set_is_warned_of(world: World) -> None:
    (warning,) = warnings_of_rule(world, ORDERS, [("ATTRIBUTECHANGED", "State")], actions=[warn("w")])
    assert "callers cannot set State" in warning


# --- conditions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "repository, event, condition, target, words",
    [
        (PRODUCTS, "COMMIT", ("Colour", "IsNull"), "AttributeName", "has no attribute 'Colour'"),
        (PRODUCTS, "COMMIT", ("PartNumbr", "IsNull"), "AttributeName", "Did you mean PartNumber"),
        (PRODUCTS, "COMMIT", ("PartNumber.Code", "IsNull"), "AttributeName", "is not a reference"),
        (PRODUCTS, "COMMIT", ("ProductGroup.Kode", "IsNull"), "AttributeName", "ProductGroups has no attribute 'Kode'"),
        (PRODUCTS, "COMMIT", ("@colour", "IsNull"), "AttributeName", "no custom property 'colour'"),
        (PRODUCTS, "COMMIT", ("$NewValue", "IsNull"), "AttributeName", "The event has no attribute '$NewValue'"),
        (ORDERS, STATE, ("$NewValue", "IsNull"), "AttributeName", "The event has no attribute '$NewValue'"),
        (LINES, DISCOUNT, ("$ToState", "IsNull"), "AttributeName", "The event has no attribute '$ToState'"),
        (LINES, DISCOUNT, ("$NewValue", "Greater_Than", "much"), "Value", "'much' is not a valid Edm.Decimal"),
        (ORDERS, STATE, ("$ToState", "Equals", "SHIPPED"), "Value", "'SHIPPED' is not a valid New | Adjustment"),
        (ORDERS, STATE, ("$ToUserStatusId", "Equals", "x"), "Value", "'x' is not a valid reference"),
        (PRODUCTS, "COMMIT", ("Active", "Equals", "yes"), "Value", "'yes' is not a valid Edm.Boolean"),
        (PRODUCTS, "COMMIT", ("UseLots", "Equals", "Mayb"), "Value", "'Mayb' is not a valid"),
        (PRODUCTS, "COMMIT", ("PartNumber", "Equals"), "Value", "use IsNull"),
        (PRODUCTS, "COMMIT", ("Active", "Greater_Than", "true"), "ComparisonType", "cannot be asked of Active"),
        (PRODUCTS, "COMMIT", ("ScrapRate", "Like", "1*"), "ComparisonType", "cannot be asked of ScrapRate"),
        (PRODUCTS, "COMMIT", ("Name", "Less_Than", "b"), "ComparisonType", "cannot be asked of Name"),
        (PRODUCTS, "COMMIT", ("ProductGroup", "Like", "*"), "ComparisonType", "cannot be asked of ProductGroup"),
    ],
)
def test_conditions_name_what_exists_and_values_parse(
    world: World, repository: str, event: Any, condition: tuple[str, ...], target: str, words: str
) -> None:
    good = ("Id", "Not_IsNull")
    error = refusal(world, repository, [event], conditions=[good, condition], actions=[fail()])
    assert error.target == f"Conditions/1/{target}"
    assert words in error.message


def test_an_event_attribute_must_be_known_to_every_event_of_the_rule(world: World) -> None:
    error = refusal(world, ORDERS, [STATE, "COMMIT"], conditions=[("$ToState", "Equals", "Released")], actions=[fail()])
    assert [detail.target for detail in error.details] == ["Conditions/0/AttributeName"]


def test_a_value_must_fit_the_attribute_of_every_event(world: World) -> None:
    events = [DISCOUNT, ("ATTRIBUTECHANGING", "RequiredDeliveryDate")]
    error = refusal(world, LINES, events, conditions=[("$NewValue", "Greater_Than", "0.25")], actions=[fail()])
    assert "not a valid Edm.Date" in error.message


# --- actions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action, target, words",
    [
        (("FAIL",), "Parameter1Value", "Parameter 1 (message) is missing"),
        (("FAIL", ("Attribute", "PartNumber")), "Parameter1Type", "must be one of Constant, FormattedString, Interpol"),
        (("FAIL", ("Interpolate", "{Colour}")), "Parameter1Value", "has no attribute 'Colour'"),
        (("FAIL", ("FormattedString", "{Name")), "Parameter1Value", "never closed"),
        (("FAIL", ("Interpolate", "{ScrapRate:dd}")), "Parameter1Value", "The format 'dd' does not fit"),
        (("FAIL", ("Interpolate", "{$NewValue}")), "Parameter1Value", "Nothing here tells '$NewValue'"),
        (("FAIL", ("Constant", "a"), ("Constant", "b")), "Parameter2Value", "FAIL has no parameter 2"),
        (("WARNING", ("Interpolate", "{@colour}")), "Parameter1Value", "no custom property 'colour'"),
        (("SETVALUE",), "Parameter1Value", "Parameter 1 (attribute) is missing"),
        (set_value("Colour", "red"), "Parameter1Value", "has no attribute 'Colour'"),
        (set_value("@colour", "red"), "Parameter1Value", "no custom property 'colour'"),
        (set_value("ProductGroup.Code", "x"), "Parameter1Value", "not an attribute of the object itself"),
        (set_value("ObjectVersion", "5"), "Parameter1Value", "ObjectVersion cannot be set"),
        (set_value("Id", "5"), "Parameter1Value", "Id cannot be set"),
        (set_value("ScrapRate", "lots"), "Parameter2Value", "'lots' is not a valid Edm.Decimal"),
        (set_value("Active", "yes"), "Parameter2Value", "'yes' is not a valid Edm.Boolean"),
        (set_value("PartNumber", None), "Parameter2Value", "PartNumber needs a value"),
        (set_value("ScrapRate", "Name", "Attribute"), "Parameter2Value", "The value of Name does not fit ScrapRate"),
        (set_value("ProductGroup", "MeasurementUnit", "Reference"), "Parameter2Value", "does not fit ProductGroup"),
        (set_value("ScrapRate", "Scrap", "Attribute"), "Parameter2Value", "has no attribute 'Scrap'"),
        (("NOTIFYUSER", ("Constant", "anna, bert"), ("Constant", "s")), "Parameter1Value", "There is no user 'bert'"),
        (("NOTIFYUSER", ("Constant", "anna")), "Parameter2Value", "Parameter 2 (subject) is missing"),
        (("SENDMAIL", ("Constant", "anna@"), ("Constant", "s")), "Parameter1Value", "is not an e-mail address"),
        (("AISET", ("Constant", "x")), "ActionType", "AISET is not available on this instance"),
        (("AIVALIDATE",), "ActionType", "not available"),
        (("AIWARNING",), "ActionType", "not available"),
    ],
)
def test_action_parameters_fit_the_action(world: World, action: tuple[Any, ...], target: str, words: str) -> None:
    error = refusal(world, PRODUCTS, ["COMMIT"], actions=[warn("fine"), action])
    assert error.target == f"Actions/1/{target}"
    assert words in error.message


def test_a_state_cannot_be_set_by_a_rule(world: World) -> None:
    assert "State cannot be set" in refusal(world, ORDERS, ["COMMIT"], actions=[set_value("State", "30")]).message


def test_csharp_is_refused(world: World) -> None:
    error = refusal(world, PRODUCTS, ["COMMIT"], ScriptLanguage="CSharp", ScriptText="x")
    assert error.target == "ScriptLanguage"


def test_every_problem_is_told_at_once(world: World) -> None:
    error = refusal(
        world,
        PRODUCTS,
        ["COMMIT", "VOIDING"],
        conditions=[("Colour", "IsNull"), ("Active", "Equals", "maybe")],
        actions=[("FAIL",), set_value("Id", "1")],
    )
    assert [detail.target for detail in error.details] == [
        "Events/1/EventType",
        "Conditions/0/AttributeName",
        "Conditions/1/Value",
        "Actions/0/Parameter1Value",
        "Actions/1/Parameter1Value",
    ]


def test_inactive_rules_are_held_to_the_same(world: World) -> None:
    refusal(world, PRODUCTS, ["COMMIT"], conditions=[("Colour", "IsNull")], IsActive=False)


def test_the_code_is_unique(world: World) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], code="SAME")
    with pytest.raises(errors.Refused) as caught:
        write_rule(world, PRODUCTS, ["COMMIT"], code="SAME")
    assert caught.value.code is errors.DUPLICATE_VALUE


def test_one_commit_makes_one_root_and_its_children(world: World) -> None:
    rule_id = write_rule(
        world,
        ORDERS,
        [STATE],
        conditions=[
            ("$ToUserStatusId", "Equals", "0189a1b2-0000-7000-8000-00000000000a"),
            ("DocumentNotes", "IsNull"),
        ],
        actions=[fail("Not yet.")],
    )
    rule = dataset(world.context).load(RULES, rule_id)
    assert rule is not None
    assert [len(rule.children(name)) for name in ("Events", "Conditions", "Actions")] == [1, 2, 1]
    # Stored as given, matched normalised.
    assert rule.children("Events")[0].values["EventParameter"] == "RELEASED"


def test_a_change_of_a_child_alone_is_checked_with_its_rule(world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("PartNumber", "IsNull")])
    ds = dataset(world.context)
    rule = ds.load(RULES, rule_id)
    assert rule is not None
    ds.set(rule.children("Conditions")[0], "AttributeName", "Colour")
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    assert caught.value.target == "Conditions/0/AttributeName"


def test_removing_the_event_that_a_condition_speaks_of_is_refused(world: World) -> None:
    rule_id = write_rule(world, ORDERS, [STATE], conditions=[("$ToState", "Not_IsNull")])
    ds = dataset(world.context)
    rule = ds.load(RULES, rule_id)
    assert rule is not None
    ds.delete(rule.children("Events")[0], by_client=True)
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    assert caught.value.code is errors.RULE_INVALID


def test_a_broken_rule_can_be_switched_off_but_not_on(world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("PartNumber", "IsNull")], actions=[fail()])
    bpm.UserBusinessRuleCondition.objects.update(attribute_name="Gone")
    ds = dataset(world.context)
    rule = ds.load(RULES, rule_id)
    assert rule is not None
    ds.set(rule, "IsActive", False)
    ds.commit()
    ds.set(rule, "IsActive", True)
    with pytest.raises(errors.Refused) as caught:
        ds.commit()
    assert caught.value.target == "Conditions/0/AttributeName"


def test_a_rule_may_always_be_deleted(world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("PartNumber", "IsNull")], actions=[fail()])
    bpm.UserBusinessRuleCondition.objects.update(attribute_name="Gone")
    ds = dataset(world.context)
    rule = ds.load(RULES, rule_id)
    assert rule is not None
    ds.delete(rule, by_client=True)
    ds.commit()
    assert not bpm.UserBusinessRuleCondition.objects.exists()


# --- the command and the system check -----------------------------------------------------------------------------


def test_validate_rules_says_which_active_rules_are_broken(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], code="GOOD", actions=[warn("w")])
    write_rule(world, PRODUCTS, ["COMMIT"], code="BAD", conditions=[("PartNumber", "IsNull")])
    call_command("validate_rules")
    bpm.UserBusinessRuleCondition.objects.update(attribute_name="Gone")
    cache_versions.expire()
    with pytest.raises(CommandError, match="1 of 2 rules are active and broken"):
        call_command("validate_rules")
    told = capsys.readouterr().out
    assert "BAD (A rule)" in told
    assert "Conditions/0/AttributeName: General.Products.Products has no attribute 'Gone'" in told
    assert "GOOD" not in told
    with pytest.raises(CommandError):
        call_command("validate_rules", "--json")
    listed = json.loads(capsys.readouterr().out)
    assert (listed["checked"], [rule["code"] for rule in listed["broken"]]) == (2, ["BAD"])
    assert listed["broken"][0]["problems"][0]["target"] == "Conditions/0/AttributeName"


def test_validate_rules_tells_what_saving_would_warn_of(
    api: Api, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {"Code": "IDLE", "Name": {"EN": "Idle"}, "RepositoryName": PRODUCTS, "IsActive": True}
    late = {
        **body,
        "Code": "LATE",
        "Events": [{"EventType": "COMMITTED"}],
        "Actions": [{"ActionNo": 10, "ActionType": "FAIL", "Parameter1Value": "no"}],
    }
    saved = [api.post("Systems_Bpm_UserBusinessRules", each)["X-Warnings"].split(" | ") for each in (body, late)]
    assert [len(warnings) for warnings in saved] == [2, 1]
    cache_versions.expire()
    call_command("validate_rules", "--json")
    listed = json.loads(capsys.readouterr().out)
    assert listed["broken"] == []
    told = {rule["code"]: [each["message"] for each in rule["warnings"]] for rule in listed["doubtful"]}
    assert told == {"IDLE": saved[0], "LATE": saved[1]}
    call_command("validate_rules")
    shown = capsys.readouterr().out
    assert "2 rules checked." in shown
    for warning in (*saved[0], *saved[1]):
        assert f"warning: {'Actions/0' if 'too late' in warning else ''}" in shown
        assert warning in shown


def test_stored_names_whose_class_is_gone_are_reported_and_stop_no_neighbour(world: World) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("gone"), warn("stays")])
    first = bpm.UserBusinessRuleAction.objects.order_by("action_no").first()
    assert first is not None
    bpm.UserBusinessRuleAction.objects.filter(pk=first.pk).update(action_type="OLDTYPE")
    bpm.UserBusinessRuleEvent.objects.update(event_type="OLDEVENT")
    found = system_checks.run_checks(tags=["database"], databases=["default"])
    assert {message.id for message in found} >= {"rules.W001", "rules.W002"}
