"""What rules did, told to an administrator who asks (spec 05, 5.5).

Prefer: erpnet.trace-rules      the entries of this request, in Dataset.traces (odata.message.response_annotations)
RuleState.trace                 the entries of one rule, whoever sets it off, in rules.trace_log
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from domain.model.interpolation import format_value
from domain.odata.message.response_annotations import trace_asked
from rules import switches, trace_log

if TYPE_CHECKING:
    from domain.dataset.records.dispatch import Occurrence
    from domain.dataset.records.record import UnitOfWork
    from rules.actions import BoundAction
    from rules.compiling import BoundCondition, CompiledRule

#: Entries kept of one request; an import of thousands must not fill the memory.
MAX_ENTRIES = 1000


@dataclass(slots=True)
class Trace:
    """One rule on one event."""

    rule_id: str
    rule: str
    event: str
    parameter: str
    entity: str
    for_caller: bool
    logged: bool
    outcome: str = ""
    conditions: list[Mapping[str, Any]] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)

    def condition(self, condition: BoundCondition, actual: Any, holds: bool) -> None:
        """A condition was asked: both values, and the outcome."""
        self.conditions.append(
            {
                "AttributeName": condition.name.text,
                "ComparisonType": condition.comparison.name,
                "Actual": None if actual is None else format_value(actual),
                "Value": condition.spec.value,
                "Holds": holds,
            }
        )

    def action(self, action: BoundAction) -> None:
        """An action is taken."""
        first = action.spec.parameters[0].value
        self.actions.append(action.type.name if first is None else f"{action.type.name} {first}")

    def script(self) -> None:
        """The script is run."""
        self.actions.append("script")

    def entry(self, milliseconds: float) -> dict[str, Any]:
        """As it is shown."""
        return {
            "Rule": self.rule,
            "Event": self.event,
            "EventParameter": self.parameter or None,
            "Entity": self.entity,
            "Conditions": self.conditions,
            "Actions": self.actions,
            "Error": self.outcome or None,
            "Milliseconds": round(milliseconds, 3),
        }


def begin(rule: CompiledRule, occurrence: Occurrence) -> Trace | None:
    """A trace to fill where somebody asked for it, else None: the usual case costs two lookups."""
    context = occurrence.dataset.context
    asked = trace_asked(context)
    switched = rule.spec.id in switches.traced_rules()
    if not asked and not switched:
        return None
    return trace_of(rule, occurrence, for_caller=asked, logged=switched)


def trace_of(rule: CompiledRule, occurrence: Occurrence, *, for_caller: bool, logged: bool = False) -> Trace:
    """An empty trace."""
    record = occurrence.record
    entity = f"{record.repository.set_name}({record.id})"
    return Trace(rule.spec.id, rule.spec.code, occurrence.type, occurrence.parameter, entity, for_caller, logged)


def finish(trace: Trace, dataset: UnitOfWork, seconds: float) -> None:
    """Hand the trace to whoever asked."""
    entry = trace.entry(seconds * 1000)
    if trace.for_caller and len(dataset.traces) < MAX_ENTRIES:
        dataset.traces.append(entry)
    if trace.logged:
        trace_log.keep(trace.rule_id, entry)
