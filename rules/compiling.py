"""Rules made ready to run: for each event of a rule its conditions and actions with every name and value bound.

The same binding is what validation reports (rules.validation); a rule that passed it once may still break later, when
a custom property or an action type goes away. Such a rule is kept, marked broken: see rules.engine for what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_noop as _

from domain.dataset.checks.authority import Acting
from domain.dataset.lookups.names import EventValues, Name, UnknownName
from domain.dataset.records.record import Record
from domain.entities.systems_bpm import RULE_EXECUTION_PRIORITY
from domain.model.registry import repositories
from foundation.enums import EnumType
from foundation.failures import record_failure
from foundation.kinds import Kind
from rules.actions import BoundAction, BrokenAction, action_types
from rules.conditions import Comparison, Operand, comparisons
from rules.scope import Finding, RuleScope, found, scopes_of
from rules.specs import ActionSpec, ConditionSpec, EventSpec, RuleSpec


@dataclass(frozen=True, slots=True)
class BoundCondition:
    """A condition whose name is known and whose value is parsed."""

    spec: ConditionSpec
    name: Name
    operand: Operand
    comparison: Comparison
    expected: Any

    def actual(self, record: Record, events: EventValues) -> Any:
        """The value that is compared now."""
        return self.name.read(record, events)

    def holds(self, actual: Any) -> bool:
        """Whether the value satisfies the comparison."""
        return self.comparison.holds(self.operand, actual, self.expected)


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """One rule on one of its events.

    steps           repository → what the chain of rules acting on it says of this one (spec 05, 5.3), with the rule's
                    author. A rule on a base repository (documents, parties) watches its subtypes too: these are all
    broken          why it can no longer be evaluated; "" when it can
    """

    spec: RuleSpec
    event: str
    parameter: str
    priority: int
    steps: Mapping[str, Acting]
    conditions: tuple[BoundCondition, ...] = ()
    actions: tuple[BoundAction, ...] = ()
    broken: str = ""

    @property
    def order(self) -> tuple[int, str, str]:
        """Rules of one event run by this."""
        return (self.priority, self.spec.code, self.spec.id)


def compile_rule(rule: RuleSpec) -> Iterator[CompiledRule]:
    """One compiled rule for each event. An event that means nothing (any more) is left out: nothing could raise it."""
    if rule.repository not in repositories:
        return
    for event_spec, scope in scopes_of(rule, repositories[rule.repository]):
        if event_spec is None or isinstance(scope, Finding) or scope.event is None:
            continue
        yield _compile_event(rule, event_spec, scope)


def _compile_event(rule: RuleSpec, event_spec: EventSpec, scope: RuleScope) -> CompiledRule:
    assert scope.event is not None
    conditions: list[BoundCondition] = []
    actions: list[BoundAction] = []
    try:
        broken = _bind_members(rule, scope, conditions, actions)
    except Exception as exc:
        # One rule that nobody foresaw must not stop the index, and so every commit of the instance.
        record_failure(f"compiling the rule {rule.code}", exc)
        broken = f"{type(exc).__name__}: {exc}"
    where = f"{scope.event.name} {scope.parameter}".strip()
    watched = (scope.repository, *scope.repository.subtypes)
    return CompiledRule(
        rule,
        scope.event.name,
        scope.parameter,
        RULE_EXECUTION_PRIORITY.members.get(event_spec.priority, RULE_EXECUTION_PRIORITY.members["Normal"]),
        {
            repository.name: Acting(f"{rule.code} ({where} {repository.set_name})", rule.author)
            for repository in watched
        },
        tuple(conditions),
        tuple(actions),
        broken,
    )


def _bind_members(
    rule: RuleSpec, scope: RuleScope, conditions: list[BoundCondition], actions: list[BoundAction]
) -> str:
    """Fill in what can be bound; why the rule is broken, "" when it is not."""
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
    """The condition ready to ask, or what is wrong with it."""
    try:
        name = scope.bind(condition.attribute_name)
    except UnknownName as exc:
        return Finding(str(exc), "AttributeName")
    comparison = comparisons.get(condition.comparison)
    if comparison is None:
        return found("ComparisonType", _("There is no comparison {0}."), condition.comparison)
    if name.kind not in comparison.kinds:
        return found(
            "ComparisonType", _("{0} cannot be asked of {1} ({2})."), comparison.name, name.text, name.kind.value
        )
    operand = Operand(name.kind, name.enum)
    if not comparison.needs_value:
        return BoundCondition(condition, name, operand, comparison, None)
    if condition.value is None:
        return found("Value", _("{0} needs a value; to ask whether there is none, use IsNull."), comparison.name)
    try:
        expected = comparison.parse(operand, condition.value)
    except ValueError:
        return found(
            "Value", _("'{0}' is not a valid {1} for {2}."), condition.value, _expected(name.kind, name.enum), name.text
        )
    return BoundCondition(condition, name, operand, comparison, expected)


def _expected(kind: Kind, enum: EnumType | None) -> str:
    return " | ".join(enum.members) if enum is not None else kind.value


def bind_action(action: ActionSpec, scope: RuleScope) -> BoundAction:
    """The action ready to run. Raises BrokenAction."""
    action_type = action_types.get(action.action_type)
    if action_type is None:
        raise BrokenAction(found("", _("There is no action type {0}."), action.action_type).message)
    return action_type.bind(action, scope)
