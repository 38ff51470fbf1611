"""Rules as a subscriber of the domain's events (spec 05, 5.2).

An event's matching rules run by priority, then Code. Of each rule the conditions are asked by ConditionNo until one
does not hold; when all hold the actions run by ActionNo, then the script. What they change, they change as the
platform: CLIENT* events do not follow from it.

What goes wrong:

FAIL                        Refused(RULE_FAILED) with the rule's message
a rule sets off itself      Refused(RULE_LOOP) with the chain, after MAX_DEPTH rules inside one another
broken, may refuse          Refused(RULE_BROKEN) naming the rule: it fails closed, whatever its conditions would say
broken otherwise            it is left out with a warning that names it, and recorded
an unforeseen exception     Refused(RULE_BROKEN) naming the rule
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from domain.dataset.records.dispatch import Occurrence
from domain.dataset.records.record import UnitOfWork
from foundation import errors
from foundation.failures import record_failure
from rules import scripting, statistics, tracing
from rules.compiling import CompiledRule
from rules.firing import Firing
from rules.index import Triggers, rule_index

logger = logging.getLogger("platform.rules")

#: Rules acting inside one another (in frontend datasets one rule's change raises another's event at once).
MAX_DEPTH = 16

_NOTHING: Triggers = {}


class RuleEngine:
    """The one subscriber of this app."""

    def watches(self, repository: str, event: str) -> Collection[str]:
        """The parameters that active rules watch; one lookup, no query while the stamps are unchanged."""
        return rule_index().triggers.get((repository, event), _NOTHING)

    def handle(self, occurrence: Occurrence) -> None:
        """Run the matching rules, in order."""
        found = rule_index().triggers.get((occurrence.record.repository.name, occurrence.type), _NOTHING)
        for rule in found.get(occurrence.parameter, ()):
            run_rule(rule, occurrence)


engine = RuleEngine()


def run_rule(rule: CompiledRule, occurrence: Occurrence) -> None:
    """One rule on one event, timed, and traced where somebody asked for it."""
    trace = tracing.begin(rule, occurrence)
    started = time.perf_counter()
    fired, failed = False, False
    try:
        fired = evaluate(rule, occurrence, trace)
    except errors.PlatformError as exc:
        # A rule that refuses does what it is there for; only what it could not do is a failure.
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
            tracing.finish(trace, occurrence.dataset, elapsed)


def _report_slow(rule: CompiledRule, occurrence: Occurrence, seconds: float) -> None:
    """Whether it fired or not: conditions can be slow, too."""
    fields = {"rule": rule.spec.code, "repository": occurrence.record.repository.name, "event": occurrence.type}
    logger.warning("slow rule", extra={**fields, "duration_ms": round(seconds * 1000, 1)})


def evaluate(rule: CompiledRule, occurrence: Occurrence, trace: tracing.Trace | None) -> bool:
    """Ask and act; whether the conditions held."""
    dataset = occurrence.dataset
    if rule.broken:
        _report_broken(rule, dataset)
        return False
    # Plain statements and no context managers: each of those would cost as much as a simple action.
    try:
        for condition in rule.conditions:
            actual = condition.actual(occurrence.record, occurrence.attributes)
            holds = condition.holds(actual)
            if trace is not None:
                trace.condition(condition, actual, holds)
            if not holds:
                return False
        _act(rule, occurrence, trace)
    except Exception as exc:
        told = _with_the_rules_name(exc, rule, dataset)
        if told is exc:
            raise
        raise told from exc
    return True


def _act(rule: CompiledRule, occurrence: Occurrence, trace: tracing.Trace | None) -> None:
    """Run the actions and the script, keeping the chain of rules inside one another; stop it when it grows too long."""
    dataset = occurrence.dataset
    step = rule.steps[occurrence.record.repository.name]
    dataset.acting.append(step)
    dataset.trail.append(step.name)
    try:
        if len(dataset.acting) > MAX_DEPTH:
            raise errors.Refused(errors.RULE_LOOP, " → ".join(each.name for each in dataset.acting))
        firing = Firing(rule.spec, occurrence)
        for action in rule.actions:
            if trace is not None:
                trace.action(action)
            action.type.run(action, firing)
        if rule.spec.has_script:
            if trace is not None:
                trace.script()
            scripting.run_script(firing)
    finally:
        dataset.acting.pop()


def _with_the_rules_name(exc: Exception, rule: CompiledRule, dataset: UnitOfWork) -> Exception:
    """What a rule cannot do is said with the rule's name; refusals of the data and the model keep their own words."""
    if isinstance(exc, errors.Refused):
        return _broken(rule, dataset, exc) if exc.code is errors.INTERPOLATION_FAILED else exc
    if isinstance(exc, errors.Unavailable | errors.TooManyRequests | errors.VersionConflict | DatabaseError):
        return exc
    if isinstance(exc, errors.PlatformError):
        return _broken(rule, dataset, exc)
    record_failure(f"rule {rule.spec.code}", exc)
    return _broken(rule, dataset, f"{type(exc).__name__}: {exc}")


def _broken(rule: CompiledRule, dataset: UnitOfWork, why: Any) -> errors.Refused:
    return errors.Refused(errors.RULE_BROKEN, rule.spec.title(dataset.context.language), why)


def _report_broken(rule: CompiledRule, dataset: UnitOfWork) -> None:
    error = _broken(rule, dataset, rule.broken)
    if rule.spec.can_refuse():
        raise error
    if error.message not in dataset.warnings:
        dataset.warnings.append(error.message)
        record_failure(f"rule {rule.spec.code}", error)
