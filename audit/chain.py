"""Assigns committed entries their positions in the chain, and signs heads.

One process of all nodes at a time does this, in short transactions that do not block writers of entries: on PostgreSQL
it holds an advisory lock and updates only unchained rows, on SQLite it is one more short write. The unique position
prevents a second chain in any case. A killed process rolls its batch back.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import connection, transaction

from audit.hashing import GENESIS, entry_hash, head_seal, moment
from audit.models import AuditEntry, AuditHead
from audit.rows import TABLE, rows_read
from audit.signer import signer_get
from audit.sources import entry_sources
from foundation.fields import utc_now

#: Entries per transaction: 10 ms on SQLite, which has one writer at a time.
BATCH = 500
#: Entries per call; the next call continues.
MAX_PER_CALL = 50_000
HEAD_SECONDS = 60
_HIGHEST = (1 << 63) - 1
#: Advisory lock of PostgreSQL: a number that no other lock of the platform has.
_LOCK = 0x61_75_64_69_74


class Tail(NamedTuple):
    """The end of the chain."""

    position: int
    hash: str


def entries_chain() -> int:
    """Write the entries of all sources, then chain the committed entries in the order of writing.

    Returns their number; 0 also if another process has the lock.
    """
    for source in entry_sources:
        written = 0
        while written < MAX_PER_CALL and (count := source.write()):
            written += count
    chained = 0
    while chained < MAX_PER_CALL and AuditEntry.objects.filter(position=None).exists():
        count = _chain_batch()
        chained += count
        if count < BATCH:
            break
    return chained


def head_write(*, now: datetime.datetime | None = None) -> AuditHead | None:
    """Sign the end of the chain if the last head is a minute old; None otherwise.

    A head at the same position replaces the last one, so that an idle instance keeps one.
    """
    now = now or utc_now()
    if not _is_due(now):
        return None  # most calls: they take no lock
    with chain_lock() as has_lock:
        if not has_lock or not _is_due(now):
            return None
        tail = tail_get()
        AuditHead.objects.filter(position=tail.position, is_stub=False).delete()
        return head_make(tail, now)


def _is_due(now: datetime.datetime) -> bool:
    last = head_latest()
    return last is None or (now - last.at).total_seconds() >= HEAD_SECONDS


def head_make(tail: Tail, at: datetime.datetime, *, pruned: int | None = None) -> AuditHead:
    """Store a signed head, or with `pruned` a stub."""
    claims: dict[str, Any] = {"position": tail.position, "hash": tail.hash, "at": moment(at)}
    if pruned is not None:
        claims["pruned"] = pruned
    signer = signer_get()
    token = signer.sign(claims)
    return AuditHead.objects.create(
        position=tail.position,
        hash=tail.hash,
        at=at,
        is_stub=pruned is not None,
        kid=signer.key_id(),
        token=token,
        seal=head_seal(token),
    )


def head_latest() -> AuditHead | None:
    """The newest head that is no stub."""
    return AuditHead.objects.filter(is_stub=False).order_by("-position").first()


def stub_get() -> AuditHead | None:
    """The head up to which entries were pruned."""
    return AuditHead.objects.filter(is_stub=True).order_by("-position").first()


def tail_get() -> Tail:
    """The end of the chain: the last entry, or the stub if all entries were pruned."""
    # The condition also excludes tampered positions on SQLite, where texts sort after all numbers.
    chained = AuditEntry.objects.filter(position__lte=_HIGHEST).order_by("-position")
    entry = chained.values_list("position", "hash").first()
    stub = stub_get()
    if stub is not None and (entry is None or (entry[0] or 0) < stub.position):
        return Tail(stub.position, stub.hash)
    return Tail(entry[0] or 0, entry[1]) if entry is not None else Tail(0, GENESIS)


@contextmanager
def chain_lock() -> Iterator[bool]:
    """A transaction with the lock of the chain; yields False if another process has it."""
    with transaction.atomic():
        yield _try_lock()


def _try_lock() -> bool:
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,))
        return bool(cursor.fetchone()[0])


def _chain_batch() -> int:
    with chain_lock() as has_lock:
        if not has_lock:
            return 0
        position, previous = tail_get()
        links: list[tuple[int, str, int]] = []
        for row in rows_read("position IS NULL", "id", (), BATCH):
            position += 1
            previous = entry_hash(previous, row, position)
            links.append((position, previous, row.id))
        with connection.cursor() as cursor:
            cursor.executemany(f"UPDATE {TABLE} SET position = %s, hash = %s WHERE id = %s", links)
        return len(links)
