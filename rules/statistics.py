"""Statistics of rules: firings, times, failures (spec 05, 5.5), without a write per firing.

Counts are summed in the process and written after a request, at the earliest FLUSH_SECONDS after the first of them. A
killed process loses unwritten counts, which need not be exact.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from django.db.models import F, Sum

from foundation.fields import utc_now
from foundation.write_behind import WriteBehind
from rules.models import RuleDay, RuleState

FLUSH_SECONDS = 30.0
#: Retention of daily counts.
RETENTION_DAYS = 60
#: Days that charts show.
SHOWN_DAYS = 14
#: Buffered firings above which they are summed.
_MERGE_LIMIT = 10_000


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
    "rule statistics", _write, limit=_MERGE_LIMIT, interval_seconds=FLUSH_SECONDS, merge=_merged
)


def note(rule_id: str, seconds: float, *, failed: bool) -> None:
    """Count a firing or failure. A refusal by FAIL counts as a failure of the operation."""
    pending.add([_Counts(rule_id, int(not failed), int(failed), seconds, time.monotonic())])


def _add(counts: _Counts) -> None:
    last_fired = utc_now() - datetime.timedelta(seconds=time.monotonic() - counts.last)
    added = {
        "fired_count": F("fired_count") + counts.fired,
        "failure_count": F("failure_count") + counts.failed,
        "total_microseconds": F("total_microseconds") + int(counts.seconds * 1_000_000),
        "last_fired": last_fired,
    }
    if not RuleState.objects.filter(rule_id=counts.rule_id).update(**added):
        RuleState.objects.get_or_create(rule_id=counts.rule_id)
        RuleState.objects.filter(rule_id=counts.rule_id).update(**added)
    _add_to_day(counts, last_fired.date())


def _add_to_day(counts: _Counts, day: datetime.date) -> None:
    """Add the counts to the day of the last firing; rows are written often enough for daily charts."""
    added = {
        "fired_count": F("fired_count") + counts.fired,
        "failure_count": F("failure_count") + counts.failed,
    }
    of_day = RuleDay.objects.filter(rule_id=counts.rule_id, day=day)
    if not of_day.update(**added):
        _, created = RuleDay.objects.get_or_create(rule_id=counts.rule_id, day=day)
        of_day.update(**added)
        if created:
            oldest = day - datetime.timedelta(days=RETENTION_DAYS)
            RuleDay.objects.filter(rule_id=counts.rule_id, day__lte=oldest).delete()


@dataclass(frozen=True, slots=True)
class DayOfRule:
    """Firings and failures on a day (UTC)."""

    day: datetime.date
    fired: int
    failed: int


def rule_days(rule_ids: Collection[str], *, days: int = 14) -> dict[str, list[DayOfRule]]:
    """Guid → the last days of each rule, oldest first, in one query."""
    today = utc_now().date()
    shown = [today - datetime.timedelta(days=before) for before in reversed(range(days))]
    rows = RuleDay.objects.filter(rule_id__in=rule_ids, day__gte=shown[0])
    counted = {(str(row.rule_id), row.day): row for row in rows}
    return {
        rule_id: [
            DayOfRule(day, row.fired_count, row.failure_count) if row is not None else DayOfRule(day, 0, 0)
            for day in shown
            for row in (counted.get((rule_id, day)),)
        ]
        for rule_id in map(str, rule_ids)
    }


def firings_by_day() -> list[DayOfRule]:
    """The last SHOWN_DAYS of all rules together, oldest first."""
    today = utc_now().date()
    first = today - datetime.timedelta(days=SHOWN_DAYS - 1)
    rows = RuleDay.objects.filter(day__gte=first).values_list("day").order_by()
    counted = {day: counts for day, *counts in rows.annotate(Sum("fired_count"), Sum("failure_count"))}
    shown = [first + datetime.timedelta(days=after) for after in range(SHOWN_DAYS)]
    return [DayOfRule(day, *counted.get(day, (0, 0))) for day in shown]
