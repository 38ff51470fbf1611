"""Selects broken and failing rules (spec 05, 5.5; spec 09, 9.5)."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F, OuterRef, Subquery
from django.utils.translation import get_language

from domain.entities.systems_bpm import UserBusinessRule
from domain.model import custom_properties
from domain.model.registry import repositories
from foundation.versioned_cache import VersionedCache
from rules.index import CACHE_VERSION
from rules.models import RuleState
from rules.specs import stored_rules
from rules.validation import check_rule


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """An active rule that can no longer be evaluated, and the first reason."""

    id: str
    code: str
    problem: str


@dataclass(frozen=True, slots=True)
class FailingRule:
    """An active rule with failures: number of failures and runs."""

    id: str
    code: str
    failures: int
    runs: int


#: Language of the reasons → broken rules.
_broken: VersionedCache[dict[str, tuple[BrokenRule, ...]]] = VersionedCache(
    dict, CACHE_VERSION, custom_properties.CACHE_VERSION, state=lambda: repositories.generation
)


def broken_rules() -> tuple[BrokenRule, ...]:
    """Broken rules by code, cached as rules.index."""
    known, language = _broken.get(), get_language() or ""
    if language not in known:
        result = ((rule, next(check_rule(rule), None)) for rule in stored_rules(active_only=True))
        known[language] = tuple(BrokenRule(rule.id, rule.code, why.message) for rule, why in result if why is not None)
    return known[language]


def failing_rules(limit: int) -> tuple[list[FailingRule], int]:
    """(the most frequently failing rules, number of failing rules)."""
    state = RuleState.objects.filter(rule_id=OuterRef("pk"), failure_count__gt=0)
    result = (
        UserBusinessRule.objects.filter(is_active=True)
        .annotate(
            failures=Subquery(state.values("failure_count")[:1]),
            fired=Subquery(state.values("fired_count")[:1]),
        )
        .filter(failures__gt=0)
    )
    rows = result.annotate(runs=F("failures") + F("fired")).order_by("-failures", "code")
    shown = rows.values_list("pk", "code", "failures", "runs")[:limit]
    return [FailingRule(*row) for row in shown], result.count()
