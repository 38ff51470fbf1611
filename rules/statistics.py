"""Statistics of rules: firings, times, failures (spec 05, 5.5), without a write per firing.

Counts are summed in the process and written after the request, FLUSH_SECONDS after the first of them. A killed process
loses unwritten counts: they need not be exact.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import F

from foundation.fields import utc_now
from foundation.write_behind import WriteBehind
from rules.models import RuleState

FLUSH_SECONDS = 30.0
#: Firings that are kept before they are summed.
_MANY = 10_000


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts of one rule. seconds: total time; last: time of the last firing, on time.monotonic."""

    rule_id: str
    fired: int
    failed: int
    seconds: float
    last: float

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(
            self.rule_id,
            self.fired + other.fired,
            self.failed + other.failed,
            self.seconds + other.seconds,
            max(self.last, other.last),
        )


def _merged(firings: Iterable[_Counts]) -> list[_Counts]:
    """One row for each rule."""
    by_rule: dict[str, _Counts] = {}
    for counts in firings:
        known = by_rule.get(counts.rule_id)
        by_rule[counts.rule_id] = counts if known is None else known + counts
    return [by_rule[rule_id] for rule_id in sorted(by_rule)]


def _write(rows: Sequence[_Counts]) -> None:
    for counts in rows:
        _add(counts)


pending: WriteBehind[_Counts] = WriteBehind(
    "rule statistics", _write, limit=_MANY, interval_seconds=FLUSH_SECONDS, merge=_merged
)


def note(rule_id: str, seconds: float, *, failed: bool) -> None:
    """Count a firing or failure. A refusal by FAIL counts as a failure of the operation."""
    pending.add([_Counts(rule_id, int(not failed), int(failed), seconds, time.monotonic())])


def _add(counts: _Counts) -> None:
    added = {
        "fired_count": F("fired_count") + counts.fired,
        "failure_count": F("failure_count") + counts.failed,
        "total_microseconds": F("total_microseconds") + int(counts.seconds * 1_000_000),
        "last_fired": utc_now() - datetime.timedelta(seconds=time.monotonic() - counts.last),
    }
    if not RuleState.objects.filter(rule_id=counts.rule_id).update(**added):
        RuleState.objects.get_or_create(rule_id=counts.rule_id)
        RuleState.objects.filter(rule_id=counts.rule_id).update(**added)
