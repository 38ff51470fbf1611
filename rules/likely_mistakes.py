"""Detects rules without effect: certain cases are refused, likely cases give a warning (spec 05, 5.2)."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext_noop as _

from domain.model.registry import repositories
from foundation.enums import DOCUMENT_STATE
from foundation.kinds import Kind
from rules.compiling import BoundCondition, bind_condition
from rules.conditions import Operand, comparisons
from rules.scope import Finding, RuleScope, finding, scopes_of
from rules.specs import ConditionSpec, RuleSpec

_LOWER = ("Greater_Than", "Greater_Than_Or_Equal")
_UPPER = ("Less_Than", "Less_Than_Or_Equal")
#: Actions that return a message to the caller, which events after the commit cannot.
_NEEDS_RESPONSE = ("FAIL", "WARNING")


def contradiction(rule: RuleSpec, scope: RuleScope) -> Finding | None:
    """A finding if the rule's conditions can never all hold for the scope's event, else None."""
    known: dict[str, list[BoundCondition]] = {}
    if scope.event is not None and scope.event.name.startswith("STATE"):
        known["$tostate"] = [_target_state(scope)]
    for spec in rule.conditions:
        bound = bind_condition(spec, scope)
        if isinstance(bound, Finding):
            continue
        others = known.setdefault(bound.name.text.lower(), [])
        for other in others:
            if _exclude(bound, other):
                both = (_text(bound), _text(other))
                return finding("", _("{0} and {1} never hold together."), *both).within(f"Conditions/{spec.index}")
        others.append(bound)
    return None


def _target_state(scope: RuleScope) -> BoundCondition:
    """The event's state parameter as a condition."""
    name = scope.bind("$ToState")
    spec = ConditionSpec(0, 0, name.text, "Equals", scope.parameter)
    equals = comparisons.get("Equals")
    assert equals is not None
    return BoundCondition(spec, name, Operand(Kind.STATE, DOCUMENT_STATE), equals, scope.parameter)


def _exclude(one: BoundCondition, other: BoundCondition) -> bool:
    """Whether it is certain that no value satisfies both."""
    for fixed, compared in ((one, other), (other, one)):
        match fixed.comparison.name:
            case "IsNull":
                return not compared.holds(None)
            # A text in several languages may equal one value in each.
            case "Equals" if fixed.operand.kind is not Kind.MULTILANGUAGE:
                return not compared.holds(fixed.expected)
        names = (fixed.comparison.name, compared.comparison.name)
        if names == ("Equals", "Not_Equals"):
            return bool(fixed.expected == compared.expected)
        if names[0] in _LOWER and names[1] in _UPPER:
            # A value between the bounds exists unless one bound does not satisfy the other condition.
            return not (fixed.holds(compared.expected) and compared.holds(fixed.expected))
    return False


def _text(condition: BoundCondition) -> str:
    spec = condition.spec
    return " ".join(part for part in (condition.name.text, spec.comparison, spec.value) if part)


def likely_mistakes(rule: RuleSpec) -> Iterator[Finding]:
    """Likely mistakes in a rule that passes `rules.validation.check_rule`."""
    if not rule.events and not rule.user_startable:
        yield finding("Events", _("The rule {0} has no event: nothing starts it."), rule.code)
    if not rule.actions and not rule.has_script:
        yield finding("Actions", _("The rule {0} has neither an action nor a script: it does nothing."), rule.code)
    for action in rule.actions:
        for number, parameter in enumerate(action.parameters, 1):
            if parameter.type == "Constant" and parameter.has_placeholder:
                text = _("The rule {0} uses {1} as it is: its type is Constant. Interpolate inserts values.")
                target = f"Actions/{action.index}/Parameter{number}Type"
                yield finding(target, text, rule.code, parameter.value or "")
    for spec, scope in scopes_of(rule, repositories[rule.repository]):
        if spec is None or isinstance(scope, Finding) or scope.event is None:
            continue
        target = f"Events/{spec.index}"
        what = f"{scope.event.name} {scope.parameter}".strip()
        impossible = contradiction(rule, scope)
        if impossible is not None:
            yield finding(target, _("The rule {0} never acts on {1}: {2}"), rule.code, what, impossible.message)
        attribute = scope.repository.attribute(scope.parameter) if scope.parameter else None
        if scope.event.name.startswith("ATTRIBUTE") and attribute is not None and attribute.read_only:
            text = _("The rule {0} acts on {1} only where the frontend model calculates it: callers cannot set {2}.")
            yield finding(target, text, rule.code, what, attribute.name)
        for action in rule.actions:
            if action.action_type == "SETVALUE" and not (action.parameters[1].value or "").strip():
                text = _("The rule {0} empties {1}: its SETVALUE has no value.")
                yield finding(f"Actions/{action.index}", text, rule.code, action.parameters[0].value or "")
            if scope.event.name.endswith("COMMITTED") and action.action_type in _NEEDS_RESPONSE:
                text = _("{0} of the rule {1} comes too late on {2}: the change is saved and its caller answered.")
                yield finding(f"Actions/{action.index}", text, action.action_type, rule.code, what)
