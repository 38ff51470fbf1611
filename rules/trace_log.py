"""Stores traces of rules whose trace switch is on (spec 05, 5.5): the newest MAX_ENTRIES of each rule.

Traces are written after the request: a refusal rolls back its transaction, but its trace must be stored.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foundation.fields import utc_now
from foundation.write_behind import WriteBehind
from rules.models import RuleTrace

MAX_ENTRIES = 200
MAX_SHOWN = 20
#: Maximum buffered traces; the oldest are dropped first.
MAX_PENDING = 1000


class _Entry(NamedTuple):
    rule_id: str
    at: datetime.datetime
    entry: Mapping[str, Any]


def _write(entries: Sequence[_Entry]) -> None:
    RuleTrace.objects.bulk_create([RuleTrace(**entry._asdict()) for entry in entries])
    for rule_id in {entry.rule_id for entry in entries}:
        _remove_old(rule_id)


pending: WriteBehind[_Entry] = WriteBehind("rule traces", _write, limit=MAX_PENDING, retries=False)


def keep(rule_id: str, entry: Mapping[str, Any]) -> None:
    """Buffer an entry (rules.tracing.Trace.entry) for the end of the request; dropped if the database is busy."""
    pending.add([_Entry(rule_id, utc_now(), entry)])


def _remove_old(rule_id: str) -> None:
    kept = RuleTrace.objects.filter(rule_id=rule_id).order_by("-pk")
    oldest = kept.values_list("pk", flat=True)[MAX_ENTRIES - 1 : MAX_ENTRIES].first()
    if oldest is not None:
        RuleTrace.objects.filter(rule_id=rule_id, pk__lt=oldest).delete()


def newest(rule_id: str) -> list[tuple[datetime.datetime, Mapping[str, Any]]]:
    """The newest entries with their times, newest first."""
    rows = RuleTrace.objects.filter(rule_id=rule_id).order_by("-pk")[:MAX_SHOWN]
    return [(row.at, row.entry) for row in rows]
