"""Traces of rules whose switch is on, in a small table (spec 05, 5.5).

They are written when the request ends or the transaction has committed, not where they arise: a rule that refuses has
its transaction rolled back, and that is the trace people look for. Of each rule the newest MAX_KEPT stay.
"""

from __future__ import annotations

import datetime
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from django.db import DatabaseError, connection, transaction

from foundation.fields import utc_now
from rules.models import RuleTrace

MAX_KEPT = 200
#: Of a request or job that fires more, the newest are kept.
MAX_PENDING = 1000

_lock = threading.Lock()
_pending: deque[tuple[str, datetime.datetime, Mapping[str, Any]]] = deque(maxlen=MAX_PENDING)


def keep(rule_id: str, entry: Mapping[str, Any]) -> None:
    """Keep an entry (rules.tracing.Trace.entry) until it can be written."""
    with _lock:
        _pending.append((rule_id, utc_now(), entry))
    # Workers and commands end no requests.
    transaction.on_commit(flush_if_any, robust=True)


def flush_if_any(**_: Any) -> None:
    """Write what waits. Does nothing inside a transaction: it may be rolled back."""
    if _pending and not connection.in_atomic_block:
        flush()


def flush() -> None:
    """Write what waits, and remove what has become old. A busy database costs traces, not the caller's time."""
    with _lock:
        taken = list(_pending)
        _pending.clear()
    try:
        with transaction.atomic():
            RuleTrace.objects.bulk_create([RuleTrace(rule_id=rule, at=at, entry=entry) for rule, at, entry in taken])
            for rule_id in {rule for rule, _, _ in taken}:
                _remove_old(rule_id)
    except DatabaseError:
        return


def _remove_old(rule_id: str) -> None:
    kept = RuleTrace.objects.filter(rule_id=rule_id).order_by("-pk")
    oldest = kept.values_list("pk", flat=True)[MAX_KEPT - 1 : MAX_KEPT].first()
    if oldest is not None:
        RuleTrace.objects.filter(rule_id=rule_id, pk__lt=oldest).delete()


def newest(rule_id: str, limit: int = 20) -> list[tuple[datetime.datetime, Mapping[str, Any]]]:
    """The newest entries with their times, newest first."""
    rows = RuleTrace.objects.filter(rule_id=rule_id).order_by("-pk")[:limit]
    return [(row.at, row.entry) for row in rows]
