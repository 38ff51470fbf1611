"""Spec 05, 5.5: the Try service shows what a rule would do, and does nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest

from domain.entities.systems_core import Notification
from foundation import errors
from foundation.guids import new_guid
from rules import statistics
from rules.dry_run import DryRun, draft_dry_run
from rules.specs import RULES, rule_from_record
from tests.rules.cast import ORDERS, PRODUCTS, World, dataset, fail, new_order, set_value, warn, write_rule


def tried(world: World, rule_id: str, entity_id: str) -> list[DryRun]:
    """Dry runs of a stored rule."""
    stored = dataset(world.context).load(RULES, rule_id)
    assert stored is not None
    return draft_dry_run(rule=rule_from_record(stored), entity_id=entity_id, context=world.context)


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
    (attempt,) = tried(world, rule_id, world.product)
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
    attempts = tried(world, rule_id, order.id)
    assert [(a.event, a.parameter, a.refusal) for a in attempts] == [
        ("STATECHANGING", "Released", "Write notes first."),
        ("COMMIT", "", "Write notes first."),
    ]


def test_an_attribute_changes_to_its_current_value(world: World) -> None:
    rule_id = write_rule(
        world, PRODUCTS, [("ATTRIBUTECHANGING", "ScrapRate")], conditions=[("$NewValue", "Greater_Than", "0.25")],
        actions=[fail("{too much}")], Layer="FrontEnd", IsActive=False,
    )  # fmt: skip
    (quiet,) = tried(world, rule_id, world.product)
    assert not quiet.fired
    ds = dataset(world.context)
    product = ds.load(PRODUCTS, world.product)
    assert product is not None
    ds.set(product, "ScrapRate", Decimal("0.26"))
    ds.commit()
    (loud,) = tried(world, rule_id, world.product)
    assert (loud.fired, loud.refusal) == (True, "{too much}")


def test_an_unknown_entity_is_not_found(world: World) -> None:
    rule_id = write_rule(world, PRODUCTS, ["COMMIT"])
    with pytest.raises(errors.NotFound):
        tried(world, rule_id, new_guid())
