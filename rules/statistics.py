"""How often rules fire, how long they take, how often they fail (spec 05, 5.5), without a write per firing.

Counts are added up in the process and written FLUSH_SECONDS after the first of them: after a commit, or when a request
ends. A process that is killed loses what it has not written; these are numbers for people, not for the books.
"""

from __future__ import annotations

import datetime
import threading
import time
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import F

from foundation.fields import utc_now
from rules.models import RuleState

FLUSH_SECONDS = 30.0


@dataclass(slots=True)
class _Counts:
    """Of one rule. seconds: taken in all; last: on the clock of time.monotonic."""

    fired: int = 0
    failed: int = 0
    seconds: float = 0.0
    last: float = float("-inf")


_lock = threading.Lock()
_pending: dict[str, _Counts] = {}
_first_noted: float | None = None


def note(rule_id: str, seconds: float, *, failed: bool) -> None:
    """A rule's conditions held and it acted, or it failed. A FAIL that refuses counts as a failure of the operation."""
    global _first_noted
    now = time.monotonic()
    with _lock:
        counts = _pending.get(rule_id)
        if counts is None:
            counts = _pending[rule_id] = _Counts()
        if failed:
            counts.failed += 1
        else:
            counts.fired += 1
        counts.seconds += seconds
        counts.last = now
        if _first_noted is None:
            _first_noted = now
        is_due = now - _first_noted >= FLUSH_SECONDS
    if is_due:
        # Workers end no requests. Counts must not be written in a transaction that may be rolled back, or wait for it.
        transaction.on_commit(flush_if_due, robust=True)


def _is_due() -> bool:
    return _first_noted is not None and time.monotonic() - _first_noted >= FLUSH_SECONDS


def flush_if_due(**_: Any) -> None:
    """Write when the oldest count has waited long enough. Does nothing inside a transaction: it may be rolled back."""
    if _is_due() and not connection.in_atomic_block:
        flush()


def flush() -> None:
    """Write what has been added up. A busy database keeps it for the next time."""
    global _first_noted
    with _lock:
        taken = dict(_pending)
        _pending.clear()
        _first_noted = None
    try:
        with transaction.atomic():
            for rule_id in sorted(taken):
                _add(rule_id, taken[rule_id])
    except DatabaseError:
        with _lock:
            for rule_id, counts in taken.items():
                known = _pending.setdefault(rule_id, _Counts())
                known.fired += counts.fired
                known.failed += counts.failed
                known.seconds += counts.seconds
                known.last = max(known.last, counts.last)
            _first_noted = time.monotonic()


def forget() -> None:
    """Drop what has been counted and not written."""
    global _first_noted
    with _lock:
        _pending.clear()
        _first_noted = None


def _add(rule_id: str, counts: _Counts) -> None:
    added = {
        "fired_count": F("fired_count") + counts.fired,
        "failure_count": F("failure_count") + counts.failed,
        "total_microseconds": F("total_microseconds") + int(counts.seconds * 1_000_000),
        "last_fired": utc_now() - datetime.timedelta(seconds=time.monotonic() - counts.last),
    }
    if not RuleState.objects.filter(rule_id=rule_id).update(**added):
        RuleState.objects.get_or_create(rule_id=rule_id)
        RuleState.objects.filter(rule_id=rule_id).update(**added)
