"""Compiles rules: binds the names and values of conditions and actions for each event of a rule.

Validation (rules.validation) uses the same binding. A valid rule may break later, when a custom property or an action
type is removed. A broken rule is kept and marked; rules.engine describes the effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_noop as _

from domain.dataset.checks.authority import RunningStep
from domain.dataset.lookups.name_binding import EventValues, Name, ReferencePath, UnknownName, paths_of
from domain.dataset.records.record import Record
from domain.entities.systems_bpm import RULE_EXECUTION_PRIORITY
from domain.model.registry import repositories
from foundation.failures import record_failure
from rules.actions import BoundAction, BrokenAction, action_types
from rules.conditions import Comparison, Operand, comparisons
from rules.read_access import Reads
from rules.scope import Finding, RuleScope, finding, scopes_of
from rules.specs import ActionSpec, ConditionSpec, EventSpec, RuleSpec

#: Name in traces and messages, in place of an event, of a rule that a user has started.
STARTED = "STARTED"


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A condition with a resolved name and a parsed value."""

    spec: ConditionSpec
    name: Name
    operand: Operand
    comparison: Comparison
    expected: Any

    def actual(self, record: Record, events: EventValues) -> Any:
        return self.name.read(record, events)

    def holds(self, actual: Any) -> bool:
        return self.comparison.holds(self.operand, actual, self.expected)


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule for one of its events.

    steps           repository → the rule's entry in the chain of nested rules (spec 05, 5.3), with its author. A rule
    on
                    a base repository (documents, parties) applies to its subtypes too: these are all
    reads           data that its author must be able to read
    broken          the reason why it can no longer be evaluated; "" if it can
    """

    spec: RuleSpec
    event: str
    parameter: str
    priority: int
    steps: Mapping[str, RunningStep]
    reads: Reads
    conditions: tuple[BoundCondition, ...] = ()
    actions: tuple[BoundAction, ...] = ()
    broken: str = ""

    @property
    def order(self) -> tuple[int, str, str]:
        """Sort key of the rules of one event."""
        return (self.priority, self.spec.code, self.spec.id)


def compile_rule(rule: RuleSpec) -> Iterator[CompiledRule]:
    """One compiled rule for each known event."""
    if rule.repository not in repositories:
        return
    for event_spec, scope in scopes_of(rule, repositories[rule.repository]):
        if event_spec is None or isinstance(scope, Finding) or scope.event is None:
            continue
        yield _compile_event(rule, event_spec, scope)


def compile_start(rule: RuleSpec) -> CompiledRule | None:
    """The rule as users start it, without event attributes; None if it is not startable."""
    if not rule.user_startable or rule.repository not in repositories:
        return None
    return _compile_scope(rule, RuleScope(rule, repositories[rule.repository]), STARTED, "Normal")


def _compile_event(rule: RuleSpec, event_spec: EventSpec, scope: RuleScope) -> CompiledRule:
    assert scope.event is not None
    return _compile_scope(rule, scope, scope.event.name, event_spec.priority)


def _compile_scope(rule: RuleSpec, scope: RuleScope, event: str, priority: str) -> CompiledRule:
    conditions: list[BoundCondition] = []
    actions: list[BoundAction] = []
    try:
        broken = _bind_members(rule, scope, conditions, actions)
    except Exception as exc:
        # An unexpected error in one rule must not break the index, and with it every commit of the instance.
        record_failure(f"compiling the rule {rule.code}", exc)
        broken = f"{type(exc).__name__}: {exc}"
    where = f"{event} {scope.parameter}".strip()
    watched = (scope.repository, *scope.repository.subtypes)
    return CompiledRule(
        rule,
        event,
        scope.parameter,
        RULE_EXECUTION_PRIORITY.members.get(priority, RULE_EXECUTION_PRIORITY.members["Normal"]),
        {
            repository.name: RunningStep(f"{rule.code} ({where} {repository.set_name})", rule.author, code=rule.code)
            for repository in watched
        },
        Reads(scope.repository.name, frozenset(_paths(conditions, actions))),
        tuple(conditions),
        tuple(actions),
        broken,
    )


def _paths(conditions: list[BoundCondition], actions: list[BoundAction]) -> Iterator[ReferencePath]:
    for condition in conditions:
        yield from paths_of(condition.name)
    for action in actions:
        for parameter in action.parameters:
            yield from parameter.paths


def _bind_members(
    rule: RuleSpec, scope: RuleScope, conditions: list[BoundCondition], actions: list[BoundAction]
) -> str:
    """Bind the valid conditions and actions; returns the reason why the rule is broken, or ""."""
    broken = ""
    for condition in rule.conditions:
        bound = bind_condition(condition, scope)
        if isinstance(bound, Finding):
            broken = broken or bound.message
        else:
            conditions.append(bound)
    for action in rule.actions:
        try:
            actions.append(bind_action(action, scope))
        except BrokenAction as exc:
            broken = broken or str(exc)
    return broken


def bind_condition(condition: ConditionSpec, scope: RuleScope) -> BoundCondition | Finding:
    """The bound condition, or a finding."""
    try:
        name = scope.bind(condition.attribute_name)
    except UnknownName as exc:
        return Finding(str(exc), "AttributeName")
    comparison = comparisons.get(condition.comparison)
    if comparison is None:
        return finding("ComparisonType", _("There is no comparison {0}."), condition.comparison)
    if name.kind not in comparison.kinds:
        return finding(
            "ComparisonType", _("{0} cannot be asked of {1} ({2})."), comparison.name, name.text, name.kind.value
        )
    operand = Operand(name.kind, name.enum)
    if not comparison.needs_value:
        return BoundCondition(condition, name, operand, comparison, None)
    if condition.value is None:
        return finding("Value", _("{0} needs a value; to ask whether there is none, use IsNull."), comparison.name)
    try:
        expected = comparison.parse(operand, condition.value)
    except ValueError:
        kind = " | ".join(name.enum.members) if name.enum is not None else name.kind.value
        return finding("Value", _("'{0}' is not a valid {1} for {2}."), condition.value, kind, name.text)
    return BoundCondition(condition, name, operand, comparison, expected)


def bind_action(action: ActionSpec, scope: RuleScope) -> BoundAction:
    """The bound action. Raises BrokenAction."""
    action_type = action_types.get(action.action_type)
    if action_type is None:
        raise BrokenAction(finding("", _("There is no action type {0}."), action.action_type).message)
    return action_type.bind(action, scope)
