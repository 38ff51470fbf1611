"""Validates a rule when it is saved (spec 05, 5.2), by any client: API, import, script, admin."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext_noop as _

from domain.dataset.checks.authority import Authority, weakest
from domain.dataset.lookups.name_binding import ReferencePath, paths_of
from domain.dataset.records.record import Record
from domain.model import behaviours
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from rules.actions import action_types
from rules.authors import AUTHORS
from rules.compiling import bind_condition
from rules.likely_mistakes import contradiction, likely_mistakes
from rules.read_access import unreadable_repository
from rules.scope import Finding, RuleScope, finding, scopes_of
from rules.scripting import script_problem
from rules.specs import ACTIONS, CONDITIONS, EVENTS, LANGUAGES, RULES, EventSpec, RuleSpec, rule_from_record

#: Maximum problems in the error's message; its details have all of them.
SHOWN = 5
#: Limits of rows. Conditions are compared in pairs for each event: 3,000 took ten seconds to save.
_MAX_ROWS = {"Events": 100, "Conditions": 200, "Actions": 200}
_HARMLESS = frozenset({"IsActive", "Name", "Notes", "Icon"})


def register() -> None:
    """Register the validation of rules and their children."""
    behaviours.add_validation(RULES, validate_rule)
    for name in (EVENTS, CONDITIONS, ACTIONS):
        behaviours.add_validation(name, validate_rule_of_child)
    for name in (RULES, EVENTS, CONDITIONS, ACTIONS):
        behaviours.add_validation(name, AUTHORS.note)


def validate_rule(record: Record) -> None:
    """Raise Refused(RULE_INVALID) with one detail for each problem of the rule as it would be saved."""
    if record.is_deleted or _is_switched_off(record):
        return
    for collection, limit in _MAX_ROWS.items():
        if len(record.children(collection)) > limit:
            raise invalid([finding(collection, _("A rule has at most {0} {1}."), limit, collection)])
    rule = rule_from_record(record)
    review = review_rule(rule, _authors(record))
    if review.problems:
        raise invalid(review.problems)
    warnings = record.dataset.warnings
    # A commit may validate several times.
    warnings += [finding.message for finding in review.warnings if finding.message not in warnings]


def _is_switched_off(record: Record) -> bool:
    """Whether the change only deactivates the rule, which must be possible for a broken rule.

    A later activation is validated.
    """
    if record.state != "Modified" or record.values["IsActive"] or not set(record.original_values) <= _HARMLESS:
        return False
    return all(
        child.state == "Unchanged"
        for collection in ("Events", "Conditions", "Actions")
        for child in record.children(collection)
    )


def _authors(record: Record) -> Collection[Authority]:
    """The authors after this commit: every user who changes the rule or one of its children."""
    changed = [record, *(child for name in ("Events", "Conditions", "Actions") for child in record.children(name))]
    return set().union(*(record.dataset.authorities.get(each.key, set()) for each in changed))


def validate_rule_of_child(record: Record) -> None:
    """As `validate_rule`, for the rule that a changed event, condition or action belongs to."""
    rule = record.parent
    # A changed rule has its own validation.
    if rule is not None and rule.state == "Unchanged":
        validate_rule(rule)


@dataclass(frozen=True, slots=True)
class Review:
    """Findings about a rule: problems, which refuse it, or else likely mistakes, which give warnings."""

    problems: list[Finding]
    warnings: list[Finding]


def review_rule(rule: RuleSpec, authors: Collection[Authority] = ()) -> Review:
    """All findings of saving the rule with the rights of its authors."""
    problems = list(check_rule(rule, authors))
    return Review(problems, [] if problems else list(likely_mistakes(rule)))


def invalid(problems: list[Finding]) -> errors.Refused:
    """The error for a rule with these problems."""
    shown = (problem.message.rstrip(".") for problem in problems[:SHOWN])
    summary = " ".join(text if text.endswith("?") else f"{text}." for text in shown)
    details = [errors.Detail(errors.RULE_INVALID, (problem.message,), problem.target or None) for problem in problems]
    return errors.Refused(errors.RULE_INVALID, summary, target=problems[0].target or None, details=details)


def check_rule(rule: RuleSpec, authors: Collection[Authority] = ()) -> Iterator[Finding]:
    """Problems of a rule, each once. Targets are paths from the rule: "Conditions/2/AttributeName".

    authors   the users who save the rule; empty: the stored author
    """
    if authors:
        rule = replace(rule, author=weakest(set(authors)))
    if rule.repository not in repositories:
        hint = near(rule.repository, (repository.name for repository in repositories))
        yield finding("RepositoryName", _("There is no repository '{0}'.{1}"), rule.repository, hint)
        return
    repository = repositories[rule.repository]
    yield from _check_script(rule)
    yield from _check_reading(authors, repository, [], "RepositoryName")
    yield from _check_numbers(rule)
    scopes: list[RuleScope] = []
    for event, scope in scopes_of(rule, repository):
        if isinstance(scope, Finding):
            yield scope.within(f"Events/{event.index if event else 0}")
        elif any((scope.event, scope.parameter) == (other.event, other.parameter) for other in scopes):
            name = f"{scope.event.name if scope.event else ''} {scope.parameter}".strip()
            text = _("The rule has the event {0} already; it would act twice.")
            yield finding("EventType", text, name).within(f"Events/{event.index if event else 0}")
        else:
            scopes.append(scope)
            yield from _check_layers(rule, event, scope)
    if rule.user_startable and rule.events:
        scopes.append(RuleScope(rule, repository))  # users start it without an event and its attributes
    # With an invalid event, everything that does not depend on it is still checked.
    yield from _once(_check_members(rule, scopes or [RuleScope(rule, repository)], authors))
    impossible = [contradiction(rule, scope) for scope in scopes or [RuleScope(rule, repository)]]
    if impossible[0] is not None and all(impossible):
        yield impossible[0]


def _check_numbers(rule: RuleSpec) -> Iterator[Finding]:
    """Check that no two actions have the same number, which is their order."""
    numbers: set[int] = set()
    for action in rule.actions:
        if action.number in numbers:
            text = _("Another action of the rule has the number {0}.")
            yield finding(f"Actions/{action.index}/ActionNo", text, action.number)
        numbers.add(action.number)


def _check_layers(rule: RuleSpec, spec: EventSpec | None, scope: RuleScope) -> Iterator[Finding]:
    """Check that the given layers exist for the event; a Common rule runs in all of them."""
    if scope.event is None or spec is None:
        return
    layers = scope.event.layers
    given = {f"Events/{spec.index}/Layer": spec.layer, "Layer": rule.layer}
    for target, layer in given.items():
        if layer not in layers and (target, layer) != ("Layer", "Common"):
            yield finding(target, _("{0} has the layer {1}, not {2}."), scope.event.name, ", ".join(layers), layer)


def _check_reading(
    authors: Collection[Authority], repository: Repository[Any], paths: Iterable[ReferencePath], target: str
) -> Iterator[Finding]:
    paths = list(paths)
    for author in authors:
        if name := unreadable_repository(author, repository.name, paths):
            yield finding(target, _("The rule reads {0}, which its author may not read."), name)


def _check_members(rule: RuleSpec, scopes: list[RuleScope], authors: Collection[Authority]) -> Iterator[Finding]:
    for scope in scopes:
        for condition in rule.conditions:
            bound = bind_condition(condition, scope)
            prefix = f"Conditions/{condition.index}"
            if isinstance(bound, Finding):
                yield bound.within(prefix)
                continue
            for problem in _check_reading(authors, scope.repository, paths_of(bound.name), "AttributeName"):
                yield problem.within(prefix)
        for action in rule.actions:
            action_type = action_types.get(action.action_type)
            prefix = f"Actions/{action.index}"
            if action_type is None:
                yield finding("ActionType", _("There is no action type {0}."), action.action_type).within(prefix)
                continue
            problems = list(action_type.check(action, scope))
            if not problems and authors:
                for index, path in action_type.paths(action_type.bind(action, scope)):
                    problems += _check_reading(authors, scope.repository, [path], f"Parameter{index + 1}Value")
            yield from (problem.within(prefix) for problem in problems)


def _check_script(rule: RuleSpec) -> Iterator[Finding]:
    if rule.script_language not in LANGUAGES:
        yield finding("ScriptLanguage", _("{0} is not available on this instance."), rule.script_language)
    elif rule.has_script:
        problem = script_problem(rule.script_text or "")
        if problem is not None:
            yield Finding(problem, "ScriptText")


def _once(findings: Iterator[Finding]) -> Iterator[Finding]:
    seen: set[Finding] = set()
    for each in findings:
        if each not in seen:
            seen.add(each)
            yield each
