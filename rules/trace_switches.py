"""Trace switches of rules: a rule whose switch is on is traced for every caller."""

from __future__ import annotations

from foundation import cache_versions
from foundation.versioned_cache import VersionedCache
from rules.models import RuleState

CACHE_VERSION = "rule_switches"

_traced = VersionedCache(
    lambda: frozenset(RuleState.objects.filter(trace=True).values_list("rule_id", flat=True)), CACHE_VERSION
)


def traced_rules() -> frozenset[str]:
    """Guids of the rules whose trace switch is on. A cached call runs no query."""
    return _traced.get()


def switch_trace(rule_id: str, on: bool) -> None:
    """Turn the trace of one rule on or off, on every node."""
    RuleState.objects.update_or_create(rule_id=rule_id, defaults={"trace": on})
    cache_versions.bump(CACHE_VERSION)
