"""Verifies the chain: what was changed, removed or inserted, and where.

Each entry has a hash over the one before, so that a change shows at its place. A chain that was computed anew from some
place on fits no signed head after it; its changed and inserted entries have wrong seals. What only an external head
tells is in docs/security-model.md.
"""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db import connection
from django.utils.translation import gettext_lazy as _

from audit.chain import Tail, stub_get
from audit.hashing import GENESIS, Row, entry_hash, entry_is_sealed, head_is_sealed
from audit.kinds import ENTITY_MANAGEMENT, EntryKind, Ocsf, StoredEntry, entry_kinds
from audit.models import AuditHead
from audit.rows import TABLE, chained_rows, waiting_rows
from audit.signer import UnknownKey, WrongSignature, signer_get
from audit.sources import entry_sources
from foundation.fields import utc_now

#: Findings in a report; of a chain that fits nowhere the first ones tell enough.
MOST_FINDINGS = 100
#: Entries that are not chained after this time mean that no worker runs.
LATE_SECONDS = 120


@entry_kinds.register
class ChainVerified(EntryKind):
    """Somebody has verified the whole chain."""

    name = "audit.verified"
    title = _("Audit chain verified")
    ocsf = Ocsf(ENTITY_MANAGEMENT, 2)


class InvalidHead(Exception):
    """A text that is no head; the message says why."""


class Finding(NamedTuple):
    """What is wrong at a position; 0 for what has none."""

    position: int
    what: str


class Head(NamedTuple):
    """The end of the chain at a time, as a signed head says."""

    position: int
    hash: str
    name: str


@dataclass
class Report:
    """The result. entries: how many were verified; unchecked_seals: of keys that are not kept any more."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    entries: int = 0
    heads: int = 0
    waiting: int = 0
    unchecked_seals: int = 0
    last: Tail = field(default_factory=lambda: Tail(0, GENESIS))

    @property
    def is_full(self) -> bool:
        """Whether there is no room for more findings."""
        return len(self.findings) >= MOST_FINDINGS

    def add(self, position: int, what: str) -> None:
        """Add a finding, as long as there is room."""
        if not self.is_full:
            self.findings.append(Finding(position, what))


def head_parse(text: str) -> Head:
    """A head that was kept outside: the JSON of /sys/audit/head, or its `jws` alone. Raises InvalidHead."""
    text = text.strip()
    try:
        token = str(json.loads(text)["jws"]) if text.startswith("{") else text
        claims = signer_get().verify(token)
        position, stamp = claims["position"], claims["at"]
        return Head(int(position), str(claims["hash"]), f"the external head of {stamp}")
    except WrongSignature as exc:
        raise InvalidHead("its signature does not verify") from exc
    except UnknownKey as exc:
        raise InvalidHead(f"it is signed by the key {exc}, which this instance does not know") from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise InvalidHead("it is neither the JSON of /sys/audit/head nor its jws") from exc


def chain_verify(*, first: int = 1, last: int | None = None, external: Iterable[Head] = ()) -> Report:
    """Verify the entries from position `first` to `last`, and everything else if both are left out."""
    report = Report()
    stored, start = _stored_heads(report), _start(report)
    heads = [*stored, *external]
    if first > 1:
        # A signed head before the first entry saves reading what is before.
        trusted = [head for head in stored if start.position <= head.position < first]
        start = Tail(*max(trusted)[:2]) if trusted else start
    walk = _Walk(report, start, heads, last)
    for rows in chained_rows(start.position):
        walk.follow(rows)
        if walk.is_done or report.is_full:
            break
    walk.end()
    if last is None:
        _check_waiting(report)
        _check_copies(report)
        _check_sources(report)
    report.findings.sort()
    return report


class _Walk:
    """Compares entries with the hashes before them, and with heads.

    After an entry that does not fit there are two hashes that the next one may continue: the one that is stored, if the
    entry was replaced, and the one that was computed, if only the stored one was changed. The next entry tells.
    """

    def __init__(self, report: Report, start: Tail, heads: list[Head], last: int | None) -> None:
        self.is_done = False
        self._report, self._last = report, last
        self._position, self._previous = start
        #: The other hash that may be right, of an entry that did not fit.
        self._alternative: str | None = None
        #: The position of the last head that fits.
        self._fits_until = start.position
        #: Position → heads there that no entry was compared with yet.
        self._heads: dict[int, list[Head]] = defaultdict(list)
        for head in heads:
            self._heads[head.position].append(head)
        #: A head did not fit, so that those after it cannot either.
        self._is_other_chain = False
        self._check_heads(start.position, start.hash)

    def follow(self, rows: list[Row]) -> None:
        """Verify further entries, in the order of their positions."""
        report, kinds = self._report, defaultdict(list)
        for row in rows:
            position = row.position
            if not _is_number(position):
                report.add(self._position + 1, f"the entry with the id {row.id} ({_named(row)}) has no valid position")
                continue
            if self._last is not None and position > self._last:
                self.is_done = True
                break
            self._entry(row, position)
            report.entries += 1
            kinds[row.kind].append(StoredEntry(position, row.kind, row.subject, row.content))
        for name, entries in kinds.items():
            kind = entry_kinds.get(name)
            for position, problem in kind.problems(entries) if kind is not None else ():
                report.add(position, problem)

    def _entry(self, row: Row, position: int) -> None:
        report, is_gap = self._report, position != self._position + 1
        sealed = entry_is_sealed(row)
        if sealed is None:
            report.unchecked_seals += 1
        if is_gap:
            between = f"{self._position + 1} to {position - 1}"
            report.add(self._position + 1, f"the entries {between} are missing")
        computed = entry_hash(self._previous, row, position)
        fits = computed == row.hash
        if not fits and self._alternative is not None and entry_hash(self._alternative, row, position) == row.hash:
            fits = True
        if sealed is False:
            report.add(position, f"the entry ({_named(row)}) was changed or inserted: its seal is wrong")
        elif not fits and not is_gap:
            report.add(
                position,
                f"the entry ({_named(row)}) does not continue the chain: it, or its hash, or the entry before was "
                "changed, or entries were inserted or removed here",
            )
        self._alternative = None if fits or is_gap else computed
        self._position, self._previous = position, str(row.hash)
        self._check_heads(position, self._previous)

    def _check_heads(self, position: int, hash_: str) -> None:
        here = self._heads.pop(position, [])
        for head in here:
            if head.hash not in {hash_, self._alternative} and not self._is_other_chain:
                self._is_other_chain = True
                self._other_chain_at(head)
        if here:
            self._report.heads += len(here)
            self._fits_until = position

    def _other_chain_at(self, head: Head) -> None:
        """An entry since the last head that fits is another one. Unless it was found, the heads say no more."""
        since = min(self._fits_until + 1, head.position)
        if not any(since <= finding.position <= head.position for finding in self._report.findings):
            self._report.add(
                since,
                f"{head.name} does not fit: of the entries {since} to {head.position} some were changed, inserted or "
                "removed, and the hashes computed anew",
            )

    def end(self) -> None:
        """What must still be there after the last entry."""
        self._report.last = Tail(self._position, self._previous)
        if self.is_done or self._last is not None or self._report.is_full:
            return
        for position in sorted(position for position in self._heads if position > self._position):
            missing, head = f"{self._position + 1} to {position}", self._heads[position][0]
            self._report.add(self._position + 1, f"the entries {missing} are missing at the end: {head.name} has them")
            return


def _start(report: Report) -> Tail:
    """Where the chain begins: at the stub that pruning has left, else at nothing."""
    stub = stub_get()
    if stub is None:
        return Tail(0, GENESIS)
    report.notes.append(f"the entries up to {stub.position} were pruned")
    return Tail(stub.position, stub.hash)


def _stored_heads(report: Report) -> list[Head]:
    """The stored heads that are genuine; the others are findings. Their own columns must be what they sign."""
    heads: list[Head] = []
    for row in AuditHead.objects.order_by("position").iterator():
        name = f"the {'stub' if row.is_stub else 'head'} of {row.at:%Y-%m-%d %H:%M:%S} at {row.position}"
        problem = _head_problem(row)
        if problem:
            report.add(row.position, f"{name} is not genuine: {problem}")
            continue
        heads.append(Head(row.position, row.hash, name))
    return heads


def _head_problem(row: AuditHead) -> str:
    if head_is_sealed(row.token, row.seal) is False:
        return "its seal is wrong"
    try:
        claims: Any = signer_get().verify(row.token)
    except UnknownKey as exc:
        return f"the key {exc} is unknown"
    except WrongSignature:
        return "its signature is wrong"
    if (claims.get("position"), claims.get("hash"), "pruned" in claims) != (row.position, row.hash, row.is_stub):
        return "it was signed for another place"
    return ""


def _check_waiting(report: Report) -> None:
    """Entries that are not chained yet must be sealed, and not be old."""
    oldest: datetime.datetime | None = None
    for rows in waiting_rows():
        for row in rows:
            report.waiting += 1
            if entry_is_sealed(row) is False:
                report.add(0, f"the entry with the id {row.id} ({_named(row)}), which is not chained yet, was "
                              "changed or inserted: its seal is wrong")  # fmt: skip
            oldest = oldest or _time(row.at)
    if oldest is not None and (utc_now() - oldest).total_seconds() > LATE_SECONDS:
        report.notes.append(f"entries since {oldest:%Y-%m-%d %H:%M:%S} are not chained yet: does a worker run?")


def _check_sources(report: Report) -> None:
    """Rows of other tables that have no entry."""
    for source in entry_sources:
        for problem in source.problems():
            report.add(0, problem)
            if report.is_full:
                return
        oldest = source.oldest_waiting()
        since = None if oldest is None else _time(oldest)
        if since is not None and (utc_now() - since).total_seconds() > LATE_SECONDS:
            report.notes.append(f"changes since {since:%Y-%m-%d %H:%M:%S} have no entry yet: does a worker run?")


def _check_copies(report: Report) -> None:
    """Two entries with one seal: one is a copy of the other."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT MIN(COALESCE(position, 0)), MAX(COALESCE(position, 0)), MAX(id) FROM {TABLE} "
            f"GROUP BY seal HAVING COUNT(*) > 1 LIMIT {MOST_FINDINGS}"
        )
        for first, second, row_id in cursor.fetchall():
            report.add(int(second), f"the entry with the id {row_id} is a copy of that at {first}")


def _is_number(position: object) -> bool:
    return isinstance(position, int)


def _named(row: Row) -> str:
    return f"{row.kind!r:.60}, {row.at!s:.26}, {row.subject!r:.80}"


def _time(at: datetime.datetime | str) -> datetime.datetime | None:
    if not isinstance(at, str):
        return at
    try:
        return datetime.datetime.fromisoformat(at).replace(tzinfo=datetime.UTC)
    except ValueError:
        return None
