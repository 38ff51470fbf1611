"""Writes entries. They are neither chained nor read here, so that writers never wait for each other.

record   in the caller's transaction, with the change that it describes: one insert
note     for reads, such as an export: after the request, without waiting for SQLite's lock
failure  for anonymous callers, bounded: the first of a minute individually, further ones counted by address
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from audit.actors import Actor
from audit.hashing import canonical, entry_seal
from audit.kinds import EntryKind
from audit.models import MAX_NAME, AuditEntry
from foundation.fields import utc_now
from foundation.texts import storable, utc_text
from foundation.write_behind import WriteBehind

#: Failures that a process records individually in a minute, of all kinds and callers together.
FAILURES_PER_MINUTE = 20
#: Addresses that are counted separately; the others are counted together.
MAX_ADDRESSES = 20
OTHER_ADDRESSES = "(others)"
_WINDOW_SECONDS = 60
#: Unwritten notes of a process; the oldest are dropped first.
_MAX_PENDING = 10_000


@dataclass(frozen=True, slots=True)
class _Failures:
    """The number of failures of one kind from one address."""

    kind: type[EntryKind]
    address: str
    count: int
    since: datetime.datetime
    until: datetime.datetime


def record(kind: type[EntryKind], *, by: Actor, subject: str = "", **content: Any) -> None:
    """Write an entry, in the open transaction if there is one. content: values of JSON, in camelCase names."""
    entry_of(kind, by, subject, content).save(force_insert=True)


def note(kind: type[EntryKind], *, by: Actor, subject: str = "", **content: Any) -> None:
    """Write an entry after the request, or later while SQLite is busy; a killed process loses unwritten ones."""
    pending.add([entry_of(kind, by, subject, content)])


def failure(kind: type[EntryKind], *, by: Actor, subject: str = "", **content: Any) -> None:
    """As `note`, for failures of anonymous callers: beyond FAILURES_PER_MINUTE only their number by address."""
    if _is_recorded_individually():
        note(kind, by=by, subject=subject, **content)
    else:
        now = utc_now()
        pending_failures.add([_Failures(kind, by.address, 1, now, now)])


def forget() -> None:
    """Drop unwritten entries and the count of the minute, as in a new process."""
    global _in_window
    pending.clear()
    pending_failures.clear()
    _in_window = 0


def entry_of(kind: type[EntryKind], by: Actor, subject: str, content: dict[str, Any]) -> AuditEntry:
    """An unsaved, sealed entry; the caller inserts it."""
    at = utc_now()
    actor, subject = storable(by.name)[:MAX_NAME], storable(subject)[:MAX_NAME]
    text = canonical({**by.details(), **content})
    seal = entry_seal(kind.name, at, actor, subject, text)
    return AuditEntry(kind=kind.name, at=at, actor=actor, subject=subject, content=text, seal=seal)


_window_lock = threading.Lock()
_window, _in_window = 0, 0


def _is_recorded_individually() -> bool:
    global _window, _in_window
    now = int(time.time()) // _WINDOW_SECONDS
    with _window_lock:
        if now != _window:
            _window, _in_window = now, 0
        _in_window += 1
        return _in_window <= FAILURES_PER_MINUTE


def _merge(rows: Iterable[_Failures]) -> list[_Failures]:
    """Sums by kind and address; the smallest are summed under OTHER_ADDRESSES."""
    sums = _summed(rows)
    if len(sums) <= MAX_ADDRESSES:
        return sums
    sums.sort(key=lambda row: (row.address != OTHER_ADDRESSES, row.count), reverse=True)
    kept = MAX_ADDRESSES // 2
    return _summed([*sums[:kept], *(replace(row, address=OTHER_ADDRESSES) for row in sums[kept:])])


def _summed(rows: Iterable[_Failures]) -> list[_Failures]:
    sums: dict[tuple[type[EntryKind], str], _Failures] = {}
    for row in rows:
        known = sums.get((row.kind, row.address))
        if known is not None:
            row = replace(
                row, count=known.count + row.count, since=min(known.since, row.since), until=max(known.until, row.until)
            )
        sums[row.kind, row.address] = row
    return list(sums.values())


def _write(rows: Sequence[AuditEntry]) -> None:
    for row in rows:
        row.pk = None  # set by an attempt that was rolled back
    AuditEntry.objects.bulk_create(rows)


def _write_failures(rows: Sequence[_Failures]) -> None:
    _write(
        [
            entry_of(
                row.kind,
                Actor(address=row.address),
                "",
                {"failures": row.count, "since": utc_text(row.since), "until": utc_text(row.until)},
            )
            for row in rows
        ]
    )


pending: WriteBehind[AuditEntry] = WriteBehind("audit entries", _write, limit=_MAX_PENDING)
pending_failures: WriteBehind[_Failures] = WriteBehind(
    "audited failures", _write_failures, limit=10 * MAX_ADDRESSES, interval_seconds=_WINDOW_SECONDS, merge=_merge
)
