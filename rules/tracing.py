"""Traces of rules, for administrators (spec 05, 5.5).

Prefer: erpnet.dry-run          the entries of this request that the caller may read, in its report
Prefer: erpnet.trace-rules      the entries of this request, in Dataset.traces (odata.message.response_annotations)
RuleState.trace                 the entries of one rule for all callers, in rules.trace_log
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from domain.dataset.checks import access
from domain.dataset.checks.authority import of_caller
from domain.model.registry import repositories
from domain.model.template_syntax import format_value
from domain.odata.message.response_annotations import trace_asked
from foundation import dry_runs
from identity.context import AllPermissions
from rules import trace_log, trace_switches
from rules.read_access import may_see, unreadable
from rules.specs import RULES

if TYPE_CHECKING:
    from domain.dataset.records.dispatch import Occurrence
    from rules.actions import BoundAction
    from rules.compiling import BoundCondition, CompiledRule

#: Maximum entries of a request, so that a large import does not fill the memory.
MAX_ENTRIES = 1000
#: Shown for a value that the caller may not read.
HIDDEN = "…"


@dataclass(slots=True)
class Trace:
    """Trace of one rule on one event."""

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
        """Record a condition: both values, and the outcome."""
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
        """Record an action."""
        first = action.spec.parameters[0].value
        self.actions.append(action.type.name if first is None else f"{action.type.name} {first}")

    def script(self) -> None:
        """Record the script."""
        self.actions.append("script")

    def entry(self, milliseconds: float) -> dict[str, Any]:
        """The trace in the form of the API."""
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
    """A new trace if the caller or the rule's switch asks for one, else None; costs two lookups."""
    context = occurrence.dataset.context
    requested = trace_asked(context)
    switched = rule.spec.id in trace_switches.traced_rules()
    if not requested and not switched and dry_runs.current() is None:
        return None
    return trace_of(rule, occurrence, for_caller=requested, logged=switched)


def trace_of(rule: CompiledRule, occurrence: Occurrence, *, for_caller: bool, logged: bool = False) -> Trace:
    """An empty trace."""
    record = occurrence.record
    entity = f"{record.repository.set_name}({record.id})"
    return Trace(rule.spec.id, rule.spec.code, occurrence.type, occurrence.parameter, entity, for_caller, logged)


def finish(trace: Trace, rule: CompiledRule, occurrence: Occurrence, seconds: float, *, fired: bool) -> None:
    """Add the trace to the response, the trace log and the report of a dry run, if requested."""
    entry, dataset = trace.entry(seconds * 1000), occurrence.dataset
    if trace.for_caller and len(dataset.traces) < MAX_ENTRIES:
        dataset.traces.append(entry)
    if trace.logged:
        trace_log.keep(trace.rule_id, entry)
    run = dry_runs.current()
    if run is not None and may_see(dataset.context, occurrence.record):
        is_restricted = not isinstance(dataset.context.permissions, AllPermissions)
        run.add("rules", {**(_for_caller(entry, rule, occurrence) if is_restricted else entry), "Fired": fired})


def _for_caller(entry: dict[str, Any], rule: CompiledRule, occurrence: Occurrence) -> dict[str, Any]:
    """The entry without the rule's content if the caller may not read the rule, else without hidden values."""
    context = occurrence.dataset.context
    rules = repositories[RULES]
    if not (access.allowed(context, rules, "read") and access.row_visible(context, rules, rule.spec.id)):
        return {name: value for name, value in entry.items() if name not in ("Conditions", "Actions")}
    return without_hidden(entry, rule, occurrence)


def without_hidden(entry: dict[str, Any], rule: CompiledRule, occurrence: Occurrence) -> dict[str, Any]:
    """The entry without compared values if the rule reads data that only its author may read."""
    caller = of_caller(occurrence.dataset.context)
    if unreadable(caller, rule.reads, occurrence.record, occurrence.attributes):
        return {**entry, "Conditions": [{**condition, "Actual": HIDDEN} for condition in entry["Conditions"]]}
    return entry
