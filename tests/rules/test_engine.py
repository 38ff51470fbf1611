"""Spec 05, 5.2: which rules run when, in which order, and what a refusal leaves behind."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from domain.dataset.records.record import Record
from domain.entities.document_states import document_change_state, document_make_void, document_recalculate
from foundation import cache_versions, errors
from rules import statistics
from rules.conditions import comparisons
from rules.models import RuleState
from tests.rules.cast import (
    LINES,
    ORDERS,
    PRODUCTS,
    RULES,
    World,
    dataset,
    fail,
    make_property,
    make_world,
    new_line,
    new_order,
    new_product,
    remove_property,
    set_value,
    warn,
    write_rule,
)


def product_notes(world: World) -> str | None:
    record = dataset(world.context).load(PRODUCTS, world.product)
    assert record is not None
    return record.values[TEXT]  # type: ignore[no-any-return]


def change_notes(world: World, text: str, model: str = "common") -> Record:
    ds = dataset(world.context, model)  # type: ignore[arg-type]
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.set(record, TEXT, text)
    ds.commit()
    return record


#: A text that products have and nothing else looks at.
TEXT = "CatalogDescriptionHtml"


# --- FAIL ---------------------------------------------------------------------------------------------------------


def test_fail_cancels_the_commit_and_leaves_nothing(world: World) -> None:
    write_rule(
        world,
        PRODUCTS,
        ["COMMIT"],
        conditions=[(TEXT, "Like", "bad*")],
        actions=[fail("Not {so}!")],
    )
    with pytest.raises(errors.Refused) as caught:
        change_notes(world, "Bad thing")
    assert caught.value.code is errors.RULE_FAILED
    assert caught.value.message == "Not {so}!"  # a constant is not a template
    assert product_notes(world) is None
    change_notes(world, "good thing")
    assert product_notes(world) == "good thing"


def test_fail_anywhere_leaves_nothing_of_the_whole_commit(world: World) -> None:
    write_rule(world, LINES, ["COMMIT"], conditions=[("Quantity", "Greater_Than", "10")], actions=[fail()])
    ds = dataset(world.context)
    order = new_order(ds, world)
    new_line(ds, world, order, Quantity=Decimal(1))
    new_line(ds, world, order, Quantity=Decimal(11))
    new_product(ds, world)
    with pytest.raises(errors.Refused):
        ds.commit()
    assert dataset(world.context).load(ORDERS, order.id) is None
    assert dataset(world.context).find_all(PRODUCTS, part_number="P2") == []


def test_conditions_hold_together(world: World) -> None:
    write_rule(
        world,
        PRODUCTS,
        ["COMMIT"],
        conditions=[
            (TEXT, "Like", "a*"),
            ("PartNumber", "Equals", "P1"),
            ("ProductGroup.Code", "Equals", "G1"),
        ],
        actions=[fail()],
    )
    with pytest.raises(errors.Refused):
        change_notes(world, "abc")
    change_notes(world, "xyz")
    ds = dataset(world.context)
    new_product(ds, world, CatalogDescriptionHtml="abc")
    ds.commit()


def test_attribute_changing_refuses_above_25_percent_and_allows_25(world: World) -> None:
    write_rule(
        world,
        LINES,
        [("ATTRIBUTECHANGING", "LineCustomDiscountPercent")],
        conditions=[("$NewValue", "Greater_Than", "0.25")],
        actions=[("FAIL", ("Interpolate", "{$NewValue:N2} is too much, {$OldValue} was fine."))],
        Layer="FrontEnd",
    )
    ds = dataset(world.context, "frontend")
    line = new_line(ds, world, new_order(ds, world))
    ds.set(line, "LineCustomDiscountPercent", Decimal("0.25"))
    with pytest.raises(errors.Refused, match=r"fine|first") as caught:
        ds.set(line, "LineCustomDiscountPercent", Decimal("0.26"))
    assert caught.value.message == "0.26 is too much, 0.25 was fine."
    assert caught.value.target == "LineCustomDiscountPercent"
    assert line.values["LineCustomDiscountPercent"] == Decimal("0.25")


@pytest.mark.parametrize("parameter", ["RELEASED", "RELEASING", "30", "released"])
def test_state_parameters_match_however_they_are_written(world: World, parameter: str) -> None:
    status = "0189a1b2-0000-7000-8000-00000000000a"
    write_rule(
        world,
        ORDERS,
        [("STATECHANGING", parameter)],
        conditions=[("$ToUserStatusId", "Equals", status), ("DocumentNotes", "IsNull")],
        actions=[fail("Write notes first.")],
    )
    ds = dataset(world.context)
    order = new_order(ds, world)
    told = {"FromState": "New", "FromUserStatusId": None, "ToUserStatusId": status}
    ds.raise_event(order, "STATECHANGING", "Planned", ToState="Planned", **told)
    with pytest.raises(errors.Refused, match=r"fine|first"):
        ds.raise_event(order, "STATECHANGING", "Released", ToState="Released", **told)
    ds.set(order, "DocumentNotes", "done")
    ds.raise_event(order, "STATECHANGING", "Released", ToState="Released", **told)


def test_releasing_an_order_is_refused_until_the_condition_is_met(world: World) -> None:
    write_rule(
        world, ORDERS, [("STATECHANGING", "RELEASED")], conditions=[("CustomerPurchaseOrderNo", "IsNull")],
        actions=[("FAIL", ("Interpolate", "{DocumentNo}: {$FromState} to {$ToState} needs a purchase order."))],
    )  # fmt: skip
    ds = dataset(world.context)
    order = new_order(ds, world, DocumentNo="7")
    new_line(ds, world, order)
    ds.commit()
    document_change_state(order, "Planned")
    with pytest.raises(errors.Refused) as caught:
        document_change_state(order, "Released")
    assert caught.value.message == "7: Planned to Released needs a purchase order."
    assert order.values["State"] == "Planned"
    ds.set(order, "CustomerPurchaseOrderNo", "PO1")
    document_change_state(order, "Released")
    ds.commit()
    stored = dataset(world.context).load(ORDERS, order.id)
    assert stored is not None
    assert stored.values["State"] == "Released"


def test_voiding_and_recalculating_raise_their_events(world: World) -> None:
    write_rule(
        world, ORDERS, ["VOIDING"], conditions=[("$VoidReason", "Like", "*test*")], actions=[fail("{$VoidReason}")]
    )
    write_rule(world, LINES, ["BEFORERECALCULATE"], actions=[warn("line {LineNo}")], Layer="FrontEnd")
    ds = dataset(world.context, "frontend")
    order = new_order(ds, world)
    new_line(ds, world, order, LineNo=10)
    with pytest.raises(errors.Refused):
        document_make_void(order, "a test")
    document_recalculate(order)
    assert ds.warnings == ["line 10"]
    document_make_void(order, "a mistake")


# --- order --------------------------------------------------------------------------------------------------------


def test_rules_run_by_priority_then_code_and_actions_by_number(world: World) -> None:
    def rule(code: str, priority: str) -> None:
        event = {"EventType": "COMMIT", "ExecutionPriority": priority}
        write_rule(world, PRODUCTS, [event], code=code, actions=[warn(f"{code}.1"), warn(f"{code}.2")])

    rule("B", "Normal")
    rule("A", "Late")
    rule("D", "Early")
    rule("C", "Early")
    rule("AA", "Normal")
    record = change_notes(world, "x")
    assert record.dataset.warnings == [f"{code}.{n}" for code in ("C", "D", "AA", "B", "A") for n in (1, 2)]


def test_numbers_order_conditions_and_actions_whatever_the_order_of_their_rows(world: World) -> None:
    rule_id = write_rule(
        world, PRODUCTS, ["COMMIT"], code="N",
        conditions=[("PartNumber", "Equals", "P1"), ("Name", "Not_IsNull"), ("PartNumber", "Like", "p*")],
        actions=[warn("30"), warn("20"), warn("10")],
    )  # fmt: skip
    ds = dataset(world.context)
    rule = ds.load("Systems.Bpm.UserBusinessRules", rule_id)
    assert rule is not None
    for collection, member in (("Conditions", "ConditionNo"), ("Actions", "ActionNo")):
        for child, number in zip(ds.children(rule, collection), (30, 20, 10), strict=True):
            ds.set(child, member, number)
    ds.commit()
    _next_check()
    ds = dataset(world.context.with_(prefer={"erpnet.trace-rules": ""}))
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.set(record, TEXT, "x")
    ds.commit()
    (entry,) = ds.traces
    assert [condition["ComparisonType"] for condition in entry["Conditions"]] == ["Like", "Not_IsNull", "Equals"]
    assert ds.warnings == ["10", "20", "30"]


def test_the_first_condition_that_does_not_hold_is_the_last_one_asked(world: World) -> None:
    write_rule(
        world, PRODUCTS, ["COMMIT"], conditions=[("PartNumber", "Equals", "P9"), ("Name", "Not_IsNull")],
        actions=[warn("w")],
    )  # fmt: skip
    ds = dataset(world.context.with_(prefer={"erpnet.trace-rules": ""}))
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.set(record, TEXT, "x")
    ds.commit()
    (entry,) = ds.traces
    assert [condition["Holds"] for condition in entry["Conditions"]] == [False]


def test_the_first_fail_ends_the_operation(world: World) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], code="A", actions=[warn("before"), fail("A"), warn("after")])
    write_rule(world, PRODUCTS, ["COMMIT"], code="B", actions=[fail("B")])
    with pytest.raises(errors.Refused) as caught:
        change_notes(world, "x")
    assert caught.value.message == "A"


def test_a_rule_sees_what_an_earlier_rule_has_set(world: World) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], code="A", actions=[set_value(TEXT, "from A")])
    write_rule(
        world, PRODUCTS, ["COMMIT"], code="B", conditions=[(TEXT, "Equals", "from A")],
        actions=[set_value("Name", "{CatalogDescriptionHtml}!", "Interpolate")],
    )  # fmt: skip
    record = change_notes(world, "mine")
    assert record.values[TEXT] == "from A"
    assert record.values["Name"]["EN"] == "from A!"
    assert dataset(world.context).load(PRODUCTS, world.product).values["Name"]["BG"] == "Стол"  # type: ignore[union-attr]


def test_a_late_rule_that_changes_what_an_early_one_watches_lets_it_run_again(world: World) -> None:
    early = {"EventType": "COMMIT", "ExecutionPriority": "Early"}
    write_rule(world, PRODUCTS, [early], conditions=[(TEXT, "Equals", "two")], actions=[warn("seen")])
    write_rule(
        world,
        PRODUCTS,
        ["COMMIT"],
        conditions=[(TEXT, "Equals", "one")],
        actions=[set_value(TEXT, "two")],
    )
    record = change_notes(world, "one")
    assert record.dataset.warnings == ["seen"]
    assert product_notes(world) == "two"


# --- loops --------------------------------------------------------------------------------------------------------


def test_rules_that_keep_triggering_each_other_at_commit_are_stopped_with_the_chain(world: World) -> None:
    write_rule(
        world, PRODUCTS, ["COMMIT"], code="TICK", conditions=[(TEXT, "Not_Equals", "tick")],
        actions=[set_value(TEXT, "tick")],
    )  # fmt: skip
    write_rule(
        world, PRODUCTS, ["COMMIT"], code="TOCK", conditions=[(TEXT, "Not_Equals", "tock")],
        actions=[set_value(TEXT, "tock")],
    )  # fmt: skip
    with pytest.raises(errors.Refused) as caught:
        change_notes(world, "x")
    assert caught.value.code is errors.RULE_LOOP
    assert "TICK (COMMIT General_Products_Products) → TOCK (COMMIT General_Products_Products)" in caught.value.message
    assert product_notes(world) is None


def test_rules_inside_one_another_are_stopped_with_the_chain(world: World) -> None:
    write_rule(
        world, PRODUCTS, [("ATTRIBUTECHANGED", TEXT)], code="A", Layer="FrontEnd",
        actions=[set_value("Name", "{CatalogDescriptionHtml}+", "Interpolate")],
    )  # fmt: skip
    write_rule(
        world, PRODUCTS, [("ATTRIBUTECHANGED", "Name")], code="B", Layer="FrontEnd",
        actions=[set_value(TEXT, "{Name}+", "Interpolate")],
    )  # fmt: skip
    with pytest.raises(errors.Refused) as caught:
        change_notes(world, "x", "frontend")
    assert caught.value.code is errors.RULE_LOOP
    assert (
        "A (ATTRIBUTECHANGED CatalogDescriptionHtml General_Products_Products) → B (ATTRIBUTECHANGED Name"
        in caught.value.message
    )


def test_committed_rules_that_keep_committing_are_stopped(
    world: World, django_capture_on_commit_callbacks: object, caplog: pytest.LogCaptureFixture
) -> None:
    write_rule(
        world,
        PRODUCTS,
        ["COMMITTED"],
        code="GROW",
        actions=[set_value(TEXT, "{CatalogDescriptionHtml}x", "Interpolate")],
    )
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        change_notes(world, "")
    notes = product_notes(world)
    assert notes is not None
    assert 5 <= len(notes) <= 12
    assert "GROW (COMMITTED General_Products_Products) → GROW" in caplog.text


# --- layers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event, layer", [
    ("COMMIT", "BackEnd"), ("CLIENTCOMMIT", "Common"), ("AGGREGATECLIENTCOMMIT", "BackEnd"),
    ("CREATENEW", "FrontEnd"), ("CREATENEW", "BackEnd"), ("CREATENEW", "Common"),
])  # fmt: skip
def test_rules_run_in_datasets_of_both_models_whatever_their_layer(world: World, event: str, layer: str) -> None:
    write_rule(world, PRODUCTS, [event], Layer=layer, actions=[warn("ran")])
    for model in ("common", "frontend"):
        ds = dataset(world.context, model)
        new_product(ds, world, f"X{model}")
        ds.commit()
        assert ds.warnings == ["ran"], model


def test_client_events_do_not_follow_from_what_the_server_does(world: World) -> None:
    write_rule(world, PRODUCTS, ["CLIENTCOMMIT"], actions=[warn("client")])
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("any")])
    ds = dataset(world.context)
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.assign(record, TEXT, "server")
    ds.commit()
    assert ds.warnings == ["any"]
    assert change_notes(world, "caller").dataset.warnings == ["any", "client"]
    job = dataset(world.context.with_(client_initiated=False))
    record = job.load(PRODUCTS, world.product)
    assert record is not None
    job.set(record, TEXT, "job")
    job.commit()
    assert job.warnings == ["any"]


def test_a_changed_line_raises_the_aggregate_event_of_its_order(world: World) -> None:
    write_rule(world, ORDERS, ["AGGREGATECLIENTCOMMIT"], actions=[warn("aggregate {DocumentNo}")])
    ds = dataset(world.context)
    line = new_line(ds, world, new_order(ds, world, DocumentNo="7"))
    ds.commit()
    other = dataset(world.context)
    again = other.load(LINES, line.id)
    assert again is not None
    other.set(again, "Notes", "x")
    other.commit()
    assert other.warnings == ["aggregate 7"]


def test_committed_rules_run_in_a_dataset_of_their_own_and_cannot_undo_the_commit(
    world: World, django_capture_on_commit_callbacks: object, caplog: pytest.LogCaptureFixture
) -> None:
    write_rule(
        world,
        PRODUCTS,
        ["COMMITTED"],
        conditions=[(TEXT, "Equals", "a")],
        actions=[set_value(TEXT, "b")],
    )
    write_rule(
        world,
        PRODUCTS,
        ["CLIENTCOMMITTED"],
        conditions=[(TEXT, "Equals", "b")],
        actions=[fail("late")],
    )
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        record = change_notes(world, "a")
    assert record.values[TEXT] == "a"  # the caller's dataset is not touched
    assert product_notes(world) == "b"
    assert "late" in caplog.text


def test_a_commit_of_committed_rules_is_a_change_of_its_own(
    world: World, django_capture_on_commit_callbacks: object
) -> None:
    """What the former commit did is nothing that the rules of this one see."""
    write_rule(world, PRODUCTS, ["COMMITTED"], conditions=[("ObjectState", "Equals", "Added")], actions=[
        set_value(TEXT, "after"),
    ])  # fmt: skip
    write_rule(world, PRODUCTS, ["COMMIT"], conditions=[("ObjectState", "Equals", "Added"), (TEXT, "Not_IsNull")],
               actions=[fail("new and described")])  # fmt: skip
    ds = dataset(world.context)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        record = new_product(ds, world, "N1")
        ds.commit()
    again = dataset(world.context).load(PRODUCTS, record.id)
    assert again is not None
    assert again.values[TEXT] == "after"


def test_a_rule_on_a_base_repository_watches_its_heirs(world: World) -> None:
    write_rule(world, "General.Documents.Documents", ["COMMIT"], actions=[warn("{DocumentNo}")])
    ds = dataset(world.context)
    new_order(ds, world, DocumentNo="42")
    ds.commit()
    assert ds.warnings == ["42"]


# --- live ---------------------------------------------------------------------------------------------------------


def test_a_rule_is_live_when_saved_and_gone_when_deactivated_or_deleted(world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("on")])
    assert change_notes(world, "1").dataset.warnings == ["on"]
    ds = dataset(world.context)
    rule = ds.load(RULES, rule_id)
    assert rule is not None
    ds.set(rule, "IsActive", False)
    ds.commit()
    _next_check()
    assert change_notes(world, "2").dataset.warnings == []
    ds.set(rule, "IsActive", True)
    ds.commit()
    _next_check()
    assert change_notes(world, "3").dataset.warnings == ["on"]
    ds.delete(rule, by_client=True)
    ds.commit()
    _next_check()
    assert change_notes(world, "4").dataset.warnings == []


def test_a_changed_child_is_live_too(world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("one")])
    assert change_notes(world, "1").dataset.warnings == ["one"]
    ds = dataset(world.context)
    rule = ds.load(RULES, rule_id)
    assert rule is not None
    ds.set(rule.children("Actions")[0], "Parameter1Value", "two")
    ds.commit()
    _next_check()
    assert change_notes(world, "2").dataset.warnings == ["two"]


@pytest.mark.django_db(transaction=True)
def test_a_saved_rule_is_live_at_once_after_its_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    change_notes(world, "warm the index")
    # The helper's own word to the cache versions is not what is tested here.
    monkeypatch.setattr("tests.rules.cast.cache_versions", SimpleNamespace(expire=lambda: None))
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("live")])
    assert change_notes(world, "x").dataset.warnings == ["live"]


def _next_check() -> None:
    cache_versions.expire()


# --- broken rules -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "refusing",
    [
        {"actions": [fail()]},
        {"ScriptLanguage": "JavaScript", "ScriptText": "Action.cancel('No')"},
        {"ScriptLanguage": "JavaScript", "ScriptText": "throw new Error('No')"},
    ],
    ids=["FAIL", "cancel", "throw"],
)
def test_a_broken_rule_that_may_refuse_refuses_and_names_itself(world: World, refusing: dict[str, Any]) -> None:
    property_id = make_property(world)
    write_rule(world, PRODUCTS, ["COMMIT"], code="GUARD", conditions=[("@colour", "Equals", "red")], **refusing)
    change_notes(world, "x")
    remove_property(world, property_id)
    with pytest.raises(errors.Refused) as caught:
        change_notes(world, "y")
    assert caught.value.code is errors.RULE_BROKEN
    assert "GUARD (A rule)" in caught.value.message
    assert "colour" in caught.value.message
    assert product_notes(world) == "x"


def test_a_broken_rule_that_refuses_nothing_is_left_out_with_a_warning(world: World) -> None:
    property_id = make_property(world)
    write_rule(
        world,
        PRODUCTS,
        ["COMMIT"],
        code="B1",
        actions=[set_value(TEXT, "{@colour}!", "Interpolate")],
    )
    write_rule(world, PRODUCTS, ["COMMIT"], code="B2", actions=[warn("the neighbour runs")])
    remove_property(world, property_id)
    record = change_notes(world, "mine")
    assert record.values[TEXT] == "mine"
    assert len(record.dataset.warnings) == 2
    assert "B1" in record.dataset.warnings[0]
    assert record.dataset.warnings[1] == "the neighbour runs"


def test_a_rule_that_breaks_the_compiler_stops_no_neighbour(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    write_rule(world, PRODUCTS, ["COMMIT"], code="ODD", conditions=[("PartNumber", "Like", "never")], actions=[fail()])
    write_rule(world, PRODUCTS, ["CLIENTCOMMIT"], code="EVEN", actions=[warn("even")])
    like = comparisons.get("Like")
    monkeypatch.setattr(type(like), "parse", lambda *args: 1 // 0)
    cache_versions.bump("rules")  # as after a start: they are compiled anew
    with pytest.raises(errors.Refused, match="ODD"):
        change_notes(world, "x")
    deactivate(world, "ODD")
    assert change_notes(world, "x").dataset.warnings == ["even"]


def deactivate(world: World, code: str) -> None:
    ds = dataset(world.context)
    rule = ds.find_one(RULES, code=code)
    assert rule is not None
    ds.set(rule, "IsActive", False)
    ds.commit()
    _next_check()


def test_an_action_that_cannot_be_done_names_its_rule(world: World) -> None:
    parse_text = set_value("MinimalSalesPricePerLot", "{CatalogDescriptionHtml}", "Interpolate")
    write_rule(world, PRODUCTS, ["COMMIT"], code="BADNUM", actions=[parse_text])
    with pytest.raises(errors.Refused) as caught:
        change_notes(world, "not a number")
    assert caught.value.code is errors.RULE_BROKEN
    assert "BADNUM" in caught.value.message


# --- statistics and traces ----------------------------------------------------------------------------------------


def test_firings_and_failures_are_counted_without_a_write_each(world: World) -> None:
    fired = write_rule(world, PRODUCTS, ["CLIENTCOMMIT"], conditions=[(TEXT, "Like", "y*")], actions=[warn("w")])
    change_notes(world, "n1")
    change_notes(world, "y1")
    change_notes(world, "y2")
    assert not RuleState.objects.exclude(last_fired=None).exists()
    statistics.pending.flush()
    state = RuleState.objects.get(rule_id=fired)
    assert (state.fired_count, state.failure_count) == (2, 0)
    assert state.last_fired is not None
    assert state.total_microseconds > 0
    change_notes(world, "y3")
    statistics.pending.flush()
    assert RuleState.objects.get(rule_id=fired).fired_count == 3


@pytest.mark.django_db(transaction=True)
def test_counts_that_have_waited_are_written_after_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world()
    rule_id = write_rule(world, PRODUCTS, ["CLIENTCOMMIT"], actions=[warn("w")])
    change_notes(world, "1")
    assert not RuleState.objects.exclude(last_fired=None).exists()
    monkeypatch.setattr(statistics.pending, "interval_seconds", 0.0)
    change_notes(world, "2")
    assert RuleState.objects.get(rule_id=rule_id).fired_count == 2


def test_administrators_may_ask_for_a_trace(world: World) -> None:
    write_rule(
        world, PRODUCTS, ["COMMIT"], code="T1", conditions=[(TEXT, "Equals", "x"), ("PartNumber", "Equals", "P9")],
        actions=[fail()],
    )  # fmt: skip
    write_rule(world, PRODUCTS, ["COMMIT"], code="T2", actions=[warn("w")])
    ds = dataset(world.context.with_(prefer={"erpnet.trace-rules": ""}))
    record = ds.load(PRODUCTS, world.product)
    assert record is not None
    ds.set(record, TEXT, "x")
    ds.commit()
    first, second = ds.traces
    assert first["Rule"] == "T1"
    assert first["Conditions"] == [
        {
            "AttributeName": TEXT,
            "ComparisonType": "Equals",
            "Actual": "x",
            "Value": "x",
            "Holds": True,
        },
        {"AttributeName": "PartNumber", "ComparisonType": "Equals", "Actual": "P1", "Value": "P9", "Holds": False},
    ]
    assert first["Actions"] == []
    assert second["Actions"] == ["WARNING w"]
    assert second["Entity"] == f"General_Products_Products({world.product})"


def test_others_get_no_trace(world: World) -> None:
    assert world.context.user is not None
    write_rule(world, PRODUCTS, ["COMMIT"], actions=[warn("w")])
    user = replace(world.context.user, is_admin=False)
    ds = dataset(world.context.with_(prefer={"erpnet.trace-rules": ""}, user=user))
    new_product(ds, world)
    ds.commit()
    assert ds.traces == []
