"""Everything of spec 05, 5.2 that a rule is held to when it is saved, by whatever way: API, import, script, admin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext_noop as _

from domain.dataset.records.record import Record
from domain.model import extensions
from domain.model.naming import near
from domain.model.registry import repositories
from foundation import errors
from rules.actions import action_types
from rules.authors import AUTHORS
from rules.compiling import bind_condition
from rules.doubts import contradiction, doubts_of
from rules.scope import Finding, RuleScope, found, scopes_of
from rules.scripting import script_problem
from rules.specs import ACTIONS, CONDITIONS, EVENTS, LANGUAGES, RULES, EventSpec, RuleSpec, rule_from_record

#: Problems whose messages are in the error's own message; all of them are in its details.
SHOWN = 5
_HARMLESS = frozenset({"IsActive", "Name", "Notes", "Icon"})


def register() -> None:
    """Hold rules and their children to it from now on."""
    extensions.add_validation(RULES, validate_rule)
    for name in (EVENTS, CONDITIONS, ACTIONS):
        extensions.add_validation(name, validate_rule_of_child)
    for name in (RULES, EVENTS, CONDITIONS, ACTIONS):
        extensions.add_validation(name, AUTHORS.note)


def validate_rule(record: Record) -> None:
    """Raise Refused(RULE_INVALID) with one detail for each problem of the rule as it would be saved."""
    if record.is_deleted or _is_switched_off(record):
        return
    rule = rule_from_record(record)
    review = review_rule(rule)
    if review.problems:
        raise invalid(review.problems)
    warnings = record.dataset.warnings
    # Validations run again while a commit settles.
    warnings += [doubt.message for doubt in review.doubts if doubt.message not in warnings]


def _is_switched_off(record: Record) -> bool:
    """The rule is only deactivated: that must be possible with one that broke since it was saved.

    Activating it again is a change of its own, and is checked.
    """
    if record.state != "Modified" or record.values["IsActive"] or not set(record.original_values) <= _HARMLESS:
        return False
    return all(
        child.state == "Unchanged"
        for collection in ("Events", "Conditions", "Actions")
        for child in record.children(collection)
    )


def validate_rule_of_child(record: Record) -> None:
    """As `validate_rule`, for the rule that a changed event, condition or action belongs to."""
    rule = record.parent
    # A rule that changes itself is asked by itself.
    if rule is not None and rule.state == "Unchanged":
        validate_rule(rule)


@dataclass(frozen=True, slots=True)
class Review:
    """What is to be said of a rule: problems, for which it is refused, or else doubts, which are warnings."""

    problems: list[Finding]
    doubts: list[Finding]


def review_rule(rule: RuleSpec) -> Review:
    """Everything that saving the rule would tell."""
    problems = list(check_rule(rule))
    return Review(problems, [] if problems else list(doubts_of(rule)))


def invalid(problems: list[Finding]) -> errors.Refused:
    """The error for a rule with these problems."""
    summary = " ".join(f"{problem.message.rstrip('.')}." for problem in problems[:SHOWN])
    details = [errors.Detail(errors.RULE_INVALID, (problem.message,), problem.target or None) for problem in problems]
    return errors.Refused(errors.RULE_INVALID, summary, target=problems[0].target or None, details=details)


def check_rule(rule: RuleSpec) -> Iterator[Finding]:
    """What is wrong with a rule, each thing once. Targets are paths from the rule: "Conditions[2]/AttributeName"."""
    if rule.repository not in repositories:
        hint = near(rule.repository, (repository.name for repository in repositories))
        yield found("RepositoryName", _("There is no repository '{0}'.{1}"), rule.repository, hint)
        return
    repository = repositories[rule.repository]
    yield from _check_script(rule)
    scopes: list[RuleScope] = []
    for event, scope in scopes_of(rule, repository):
        if isinstance(scope, Finding):
            yield scope.within(f"Events[{event.index if event else 0}]")
        else:
            scopes.append(scope)
            yield from _check_layers(rule, event, scope)
    # Where an event is wrong, what depends on events is still checked as far as that can be done without it.
    yield from _once(_check_members(rule, scopes or [RuleScope(rule, repository)]))
    impossible = [contradiction(rule, scope) for scope in scopes or [RuleScope(rule, repository)]]
    if impossible[0] is not None and all(impossible):
        yield impossible[0]


def _check_layers(rule: RuleSpec, spec: EventSpec | None, scope: RuleScope) -> Iterator[Finding]:
    """The layers that are given are ones that the event has; a Common rule runs in each of them."""
    if scope.event is None or spec is None:
        return
    layers = scope.event.layers
    given = {f"Events[{spec.index}]/Layer": spec.layer, "Layer": rule.layer}
    for target, layer in given.items():
        if layer not in layers and (target, layer) != ("Layer", "Common"):
            yield found(target, _("{0} has the layer {1}, not {2}."), scope.event.name, ", ".join(layers), layer)


def _check_members(rule: RuleSpec, scopes: list[RuleScope]) -> Iterator[Finding]:
    for scope in scopes:
        for condition in rule.conditions:
            bound = bind_condition(condition, scope)
            if isinstance(bound, Finding):
                yield bound.within(f"Conditions[{condition.index}]")
        for action in rule.actions:
            action_type = action_types.get(action.action_type)
            prefix = f"Actions[{action.index}]"
            if action_type is None:
                yield found("ActionType", _("There is no action type {0}."), action.action_type).within(prefix)
                continue
            for problem in action_type.check(action, scope):
                yield problem.within(prefix)


def _check_script(rule: RuleSpec) -> Iterator[Finding]:
    if rule.script_language not in LANGUAGES:
        yield found("ScriptLanguage", _("{0} is not available on this instance."), rule.script_language)
    elif rule.has_script:
        problem = script_problem(rule.script_text or "")
        if problem is not None:
            yield Finding(problem, "ScriptText")


def _once(findings: Iterator[Finding]) -> Iterator[Finding]:
    seen: set[Finding] = set()
    for finding in findings:
        if finding not in seen:
            seen.add(finding)
            yield finding
