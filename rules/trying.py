"""Trying a rule on an entity in a dataset that is thrown away (spec 05, 5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.dispatch import Occurrence
from domain.dataset.records.record import Record
from domain.model.interpolation import format_value
from foundation import errors
from identity.context import CallContext
from rules import tracing
from rules.compiling import CompiledRule, compile_rule
from rules.engine import evaluate
from rules.specs import RULES, rule_from_record


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one event of the rule would do.

    trace      conditions with both values, and the actions taken
    refusal    the message of what it would refuse, or of what went wrong; None where it lets pass
    changes    "Set(guid).Attribute" → (before, after), as text
    warnings   what the caller would be told
    """

    event: str
    parameter: str
    fired: bool
    trace: Mapping[str, Any]
    refusal: str | None = None
    changes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def rule_try(
    *, rule_id: str, entity_id: str, context: CallContext, attributes: Mapping[str, Any] | None = None
) -> list[Attempt]:
    """One attempt for each event of the rule, each on the entity as it is stored; inactive rules can be tried too.

    attributes are event attributes (with `$`) → canonical values; without them an attribute changes to the value that
    it has, and a document moves from its state to the one that the event names. Nothing is committed, so nothing is
    saved, sent or counted. Raises NotFound for an unknown rule or entity.
    """
    stored = Dataset(context).load(RULES, rule_id)
    if stored is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, RULES, rule_id)
    rule = rule_from_record(stored)
    return [_attempt(compiled, entity_id, context, attributes) for compiled in compile_rule(rule)]


def _attempt(rule: CompiledRule, entity_id: str, context: CallContext, attributes: Mapping[str, Any] | None) -> Attempt:
    dataset = Dataset(context)
    record = dataset.load(rule.spec.repository, entity_id)
    if record is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, rule.spec.repository, entity_id)
    told = _usual(rule, record) if attributes is None else attributes
    occurrence = Occurrence(rule.event, record, dataset, rule.parameter, told)
    trace = tracing.trace_of(rule, occurrence, for_caller=True)
    fired, refusal = False, None
    try:
        fired = evaluate(rule, occurrence, trace)
    except errors.PlatformError as exc:
        fired, refusal = exc.code is not errors.RULE_BROKEN, exc.message
    return Attempt(
        rule.event,
        rule.parameter,
        fired,
        trace.entry(0),
        refusal,
        {key: change for changed in dataset.changed() for key, change in _changes(changed)},
        tuple(dataset.warnings),
    )


def _usual(rule: CompiledRule, record: Record) -> dict[str, Any]:
    """What the event would tell of the entity as it is."""
    if rule.event.startswith("ATTRIBUTE"):
        value = record.values.get(rule.parameter)
        return {"$OldValue": value, "$NewValue": value}
    if rule.event.startswith("STATE"):
        status = record.values.get("UserStatus")
        return {
            "$FromState": record.values.get("State"),
            "$ToState": rule.parameter,
            "$FromUserStatusId": status,
            "$ToUserStatusId": status,
        }
    return {"$VoidReason": None} if rule.event == "VOIDING" else {}


def _changes(record: Record) -> list[tuple[str, tuple[str, str]]]:
    entity = f"{record.repository.set_name}({record.id})"
    if record.is_new:
        return [(entity, ("", record.describe()))]
    changes = [
        (f"{entity}.{name}", (format_value(before), format_value(record.values[name])))
        for name, before in record.original_values.items()
    ]
    if record.custom_changed:
        changes.append((f"{entity}.CustomProperties", ("", ", ".join(sorted(record.custom)))))
    return changes
