"""Spec 05, 5.5: the Try service shows what a rule would do, and does nothing."""

from __future__ import annotations

import pytest

from domain.entities.systems_core import Notification
from foundation import errors
from foundation.guids import new_guid
from rules import statistics
from rules.dry_run import rule_dry_run
from tests.rules.cast import ORDERS, PRODUCTS, World, dataset, fail, new_order, set_value, warn, write_rule


def test_a_tried_rule_shows_its_changes_and_keeps_none(world: World) -> None:
    rule_id = write_rule(
        world,
        PRODUCTS,
        ["COMMIT"],
        conditions=[("PartNumber", "Equals", "P1")],
        actions=[
            set_value("CatalogDescriptionHtml", "{PartNumber}!", "Interpolate"),
            warn("w"),
            ("NOTIFYUSER", ("Constant", "anna"), ("Constant", "s")),
        ],
        IsActive=False,
    )
    (attempt,) = rule_dry_run(rule_id=rule_id, entity_id=world.product, context=world.context)
    assert attempt.fired
    assert attempt.refusal is None
    assert attempt.warnings == ("w",)
    assert attempt.trace["Conditions"][0]["Holds"] is True
    key = f"General_Products_Products({world.product}).CatalogDescriptionHtml"
    assert attempt.changes[key] == ("", "P1!")
    assert len(attempt.changes) == 2
    stored = dataset(world.context).load(PRODUCTS, world.product)
    assert stored is not None
    assert stored.values["CatalogDescriptionHtml"] is None
    assert not Notification.objects.exists()
    assert len(statistics.pending) == 0


def test_a_rule_that_would_refuse_says_so(world: World) -> None:
    ds = dataset(world.context)
    order = new_order(ds, world)
    ds.commit()
    rule_id = write_rule(
        world, ORDERS, [("STATECHANGING", "RELEASED"), "COMMIT"], conditions=[("DocumentNotes", "IsNull")],
        actions=[fail("Write notes first.")],
    )  # fmt: skip
    attempts = rule_dry_run(rule_id=rule_id, entity_id=order.id, context=world.context)
    assert [(a.event, a.parameter, a.refusal) for a in attempts] == [
        ("STATECHANGING", "Released", "Write notes first."),
        ("COMMIT", "", "Write notes first."),
    ]


def test_event_attributes_can_be_given(world: World) -> None:
    rule_id = write_rule(
        world, PRODUCTS, [("ATTRIBUTECHANGING", "ScrapRate")], conditions=[("$NewValue", "Greater_Than", "0.25")],
        actions=[fail("{too much}")], Layer="FrontEnd",
    )  # fmt: skip
    (quiet,) = rule_dry_run(rule_id=rule_id, entity_id=world.product, context=world.context)
    assert not quiet.fired
    from decimal import Decimal

    told = {"$NewValue": Decimal("0.26"), "$OldValue": None}
    (loud,) = rule_dry_run(rule_id=rule_id, entity_id=world.product, context=world.context, attributes=told)
    assert (loud.fired, loud.refusal) == (True, "{too much}")


def test_unknown_rules_and_entities_are_not_found(world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"])
    for rule, entity in ((new_guid(), world.product), (rule_id, new_guid())):
        with pytest.raises(errors.NotFound):
            rule_dry_run(rule_id=rule, entity_id=entity, context=world.context)
