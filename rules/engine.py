"""Runs rules as a subscriber of the domain's events (spec 05, 5.2).

An event's matching rules run by priority, then Code. The conditions of a rule are evaluated by ConditionNo until one
does not hold; if all hold, the actions run by ActionNo, then the script. CLIENT* events do not fire for their changes.

Failures:

FAIL                        Refused(RULE_FAILED) with the rule's message
rules trigger each other    Refused(RULE_LOOP) with the chain, after MAX_DEPTH nested rules
broken, may refuse          Refused(RULE_BROKEN) with the rule's name: it fails closed, whatever its conditions
broken otherwise            skipped with a warning that names it, and recorded
an unexpected exception     Refused(RULE_BROKEN) with the rule's name
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from django.conf import settings
from django.db import DatabaseError

from domain.dataset.checks.authority import NOBODY
from domain.dataset.records.dispatch import Occurrence
from domain.dataset.records.record import UnitOfWork
from foundation import errors
from foundation.failures import record_failure
from rules import read_access, scripting, statistics, tracing
from rules.compiling import CompiledRule
from rules.firing import Firing, broken, report_broken
from rules.index import Triggers, rule_index

logger = logging.getLogger("platform.rules")

#: Maximum depth of nested rules (in frontend datasets one rule's change raises another's event at once).
MAX_DEPTH = 16

_NO_TRIGGERS: Triggers = {}


class RuleEngine:
    """The event subscriber of this app."""

    def watches(self, repository: str, event: str) -> Collection[str]:
        """Parameters that active rules watch; one lookup in the cached index."""
        return rule_index().triggers.get((repository, event), _NO_TRIGGERS)

    def handle(self, occurrence: Occurrence) -> None:
        """Run the matching rules in order."""
        result = rule_index().triggers.get((occurrence.record.repository.name, occurrence.type), _NO_TRIGGERS)
        for rule in result.get(occurrence.parameter, ()):
            run_rule(rule, occurrence)

    def listeners(self, repository: str, event: str) -> Collection[str]:
        """Codes of the active rules on the event, in order."""
        return [rule.spec.code for rule in rule_index().triggers.get((repository, event), _NO_TRIGGERS).get("", ())]


engine = RuleEngine()


def run_rule(rule: CompiledRule, occurrence: Occurrence) -> bool:
    """Run one rule on one event, timed, and traced if its trace switch or the caller asks for it.

    Returns whether its conditions held.
    """
    trace = tracing.begin(rule, occurrence)
    started = time.perf_counter()
    fired, failed = False, False
    try:
        fired = evaluate(rule, occurrence, trace)
    except errors.PlatformError as exc:
        # A refusal is the purpose of such a rule; other errors count as failures.
        fired = exc.code in (errors.RULE_FAILED, errors.SCRIPT_CANCELLED)
        failed = not fired
        if trace is not None:
            trace.outcome = exc.message
        raise
    finally:
        elapsed = time.perf_counter() - started
        if fired or failed:
            statistics.note(rule.spec.id, elapsed, failed=failed)
        if elapsed >= settings.SLOW_RULE_SECONDS:
            _report_slow(rule, occurrence, elapsed)
        if trace is not None:
            tracing.finish(trace, rule, occurrence, elapsed, fired=fired)
    return fired


def _report_slow(rule: CompiledRule, occurrence: Occurrence, seconds: float) -> None:
    """Log a slow rule, fired or not: conditions can be slow, too."""
    fields = {"rule": rule.spec.code, "repository": occurrence.record.repository.name, "event": occurrence.type}
    logger.warning("slow rule", extra={**fields, "duration_ms": round(seconds * 1000, 1)})


def evaluate(rule: CompiledRule, occurrence: Occurrence, trace: tracing.Trace | None) -> bool:
    """Evaluate the conditions and run the actions; returns whether the conditions held."""
    dataset = occurrence.dataset
    if why := rule.broken or unreadable(rule, occurrence):
        report_broken(rule.spec, dataset, why)
        return False
    # No context managers here: each would cost as much as a simple action.
    try:
        for condition in rule.conditions:
            actual = condition.actual(occurrence.record, occurrence.attributes)
            holds = condition.holds(actual)
            if trace is not None:
                trace.condition(condition, actual, holds)
            if not holds:
                return False
        _run_actions(rule, occurrence, trace)
    except Exception as exc:
        error = _naming_rule(exc, rule, dataset)
        if isinstance(error, errors.PlatformError):
            # The innermost of nested rules has raised it.
            error.rule_id = error.rule_id or rule.spec.id
        if error is exc:
            raise
        raise error from exc
    return True


def _run_actions(rule: CompiledRule, occurrence: Occurrence, trace: tracing.Trace | None) -> None:
    """Run the actions and the script within the chain of nested rules; refuse a chain that is too long."""
    dataset = occurrence.dataset
    step = rule.steps[occurrence.record.repository.name]
    dataset.running_steps.append(step)
    dataset.recent_steps.append(step.name)
    try:
        if len(dataset.running_steps) > MAX_DEPTH:
            raise errors.Refused(errors.RULE_LOOP, " → ".join(each.name for each in dataset.running_steps))
        firing = Firing(rule.spec, occurrence)
        for action in rule.actions:
            if trace is not None:
                trace.action(action)
            if action.type.discloses_entity and (why := _hidden(rule, occurrence)):
                report_broken(rule.spec, dataset, why)
            else:
                action.type.run(action, firing)
        if rule.spec.has_script:
            if trace is not None:
                trace.script()
            scripting.run_script(firing)
    finally:
        dataset.running_steps.pop()


def _naming_rule(exc: Exception, rule: CompiledRule, dataset: UnitOfWork) -> Exception:
    """Add the rule's name to its own errors; refusals of the data and the model keep their message."""
    if isinstance(exc, errors.Refused):
        return broken(rule.spec, dataset, exc) if exc.code is errors.INTERPOLATION_FAILED else exc
    if isinstance(exc, errors.Unavailable | errors.TooManyRequests | errors.VersionConflict | DatabaseError):
        return exc
    if isinstance(exc, errors.PlatformError):
        return broken(rule.spec, dataset, exc)
    record_failure(f"rule {rule.spec.code}", exc)
    return broken(rule.spec, dataset, f"{type(exc).__name__}: {exc}")


def unreadable(rule: CompiledRule, occurrence: Occurrence) -> str:
    """The reason why the author's rights do not suffice to evaluate the rule; "" if they do."""
    name = read_access.unreadable(rule.spec.author, rule.reads, occurrence.record, occurrence.attributes)
    return errors.format_message(read_access.REASON, [name]) if name else ""


def _hidden(rule: CompiledRule, occurrence: Occurrence) -> str:
    """The reason why the rule's messages may not show the entity; "" if they may, or the author is unknown."""
    author = rule.spec.author
    name = "" if author == NOBODY else read_access.hidden_entity(author, occurrence.record)
    return errors.format_message(read_access.REASON, [name]) if name else ""
