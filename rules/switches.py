"""Which rules are traced whoever sets them off."""

from __future__ import annotations

from foundation import stamps
from rules.models import RuleState

STAMP = "rule_switches"

_cache: tuple[int, frozenset[str]] | None = None


def traced_rules() -> frozenset[str]:
    """Guids of the rules whose trace switch is on. A warm call makes no query."""
    global _cache
    stamp = stamps.current(STAMP)
    if _cache is None or _cache[0] != stamp:
        _cache = (stamp, frozenset(RuleState.objects.filter(trace=True).values_list("rule_id", flat=True)))
    return _cache[1]


def switch_trace(rule_id: str, on: bool) -> None:
    """Turn the trace of one rule on or off, on every node."""
    RuleState.objects.update_or_create(rule_id=rule_id, defaults={"trace": on})
    stamps.bump(STAMP)
