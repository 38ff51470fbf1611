"""Dry runs of a rule on an entity, in a dataset that is never committed (spec 05, 5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.dispatch import Occurrence
from domain.dataset.records.record import Record
from domain.model.template_syntax import format_value
from foundation import errors
from identity.context import CallContext
from rules import tracing
from rules.compiling import CompiledRule, compile_rule
from rules.engine import evaluate
from rules.specs import RuleSpec


@dataclass(frozen=True, slots=True)
class DryRun:
    """The effect of one event of the rule.

    trace      conditions with both values, and the actions that ran
    refusal    the error message of a refusal or failure; None if the rule lets the operation pass
    changes    "Set(guid).Attribute" → (before, after), as text
    warnings   warnings for the caller
    """

    event: str
    parameter: str
    fired: bool
    trace: Mapping[str, Any]
    refusal: str | None = None
    changes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def draft_dry_run(*, rule: RuleSpec, entity_id: str, context: CallContext) -> list[DryRun]:
    """One dry run for each event of the rule, each on the stored entity; the rule may be inactive, or not stored.

    The events have the attribute's current value as the new one, and the event's state as the document's new state.
    Nothing is committed, so nothing is saved, sent or counted. Raises NotFound for an unknown entity.
    """
    return [_dry_run(compiled, entity_id, context) for compiled in compile_rule(rule)]


def _dry_run(rule: CompiledRule, entity_id: str, context: CallContext) -> DryRun:
    dataset = Dataset(context)
    record = dataset.load(rule.spec.repository, entity_id)
    if record is None:
        raise errors.NotFound(errors.ENTITY_NOT_FOUND, rule.spec.repository, entity_id)
    occurrence = Occurrence(rule.event, record, dataset, rule.parameter, _event_attributes(rule, record))
    trace = tracing.trace_of(rule, occurrence, for_caller=True)
    fired, refusal = False, None
    try:
        fired = evaluate(rule, occurrence, trace)
    except errors.PlatformError as exc:
        fired, refusal = exc.code is not errors.RULE_BROKEN, exc.message
    return DryRun(
        rule.event,
        rule.parameter,
        fired,
        tracing.without_hidden(trace.entry(0), rule, occurrence),
        refusal,
        {key: change for changed in dataset.changed() for key, change in _changes(changed)},
        tuple(dataset.warnings),
    )


def _event_attributes(rule: CompiledRule, record: Record) -> dict[str, Any]:
    """Attributes of the rule's event for the stored entity."""
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
