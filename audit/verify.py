"""Verifies the chain: what was changed, removed or inserted, and where.

Each entry has a hash over the one before, so that a change shows at its place. A chain that was recomputed from some
position on matches no signed head after it; its changed and inserted entries have wrong seals. docs/security-model.md
lists what only an external head detects.
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

#: Maximum findings in a report: a chain with more is broken as a whole.
MAX_FINDINGS = 100
#: Entries that wait longer to be chained mean that no worker runs.
MAX_UNCHAINED_SECONDS = 120


@entry_kinds.register
class ChainVerified(EntryKind):
    """The whole chain was verified."""

    name = "audit.verified"
    title = _("Audit chain verified")
    ocsf = Ocsf(ENTITY_MANAGEMENT, 2)


class InvalidHead(Exception):
    """The text is no head; the message says why."""


class Finding(NamedTuple):
    """A problem at a position; position 0 for problems without one."""

    position: int
    what: str


class Head(NamedTuple):
    """The end of the chain at a time, from a signed head."""

    position: int
    hash: str
    name: str


@dataclass
class Report:
    """The result. entries: number of verified entries; unchecked_seals: number of seals whose key was deleted."""

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
        return len(self.findings) >= MAX_FINDINGS

    def add(self, position: int, what: str) -> None:
        """Add a finding, as long as there is room."""
        if not self.is_full:
            self.findings.append(Finding(position, what))


def head_parse(text: str) -> Head:
    """Parse an external head: the JSON of /sys/audit/head, or only its `jws`. Raises InvalidHead."""
    text = text.strip()
    try:
        token = str(json.loads(text)["jws"]) if text.startswith("{") else text
        claims = signer_get().verify(token)
        position, at = claims["position"], claims["at"]
        return Head(int(position), str(claims["hash"]), f"the external head of {at}")
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
    walk = _ChainWalk(report, start, heads, last)
    for rows in chained_rows(start.position):
        walk.follow(rows)
        if walk.is_done or report.is_full:
            break
    walk.finish()
    if last is None:
        _check_waiting(report)
        _check_copies(report)
        _check_sources(report)
    report.findings.sort()
    return report


class _ChainWalk:
    """Compares entries with the hashes before them, and with heads.

    After a mismatch the next entry may continue from either hash: the stored one, if the entry was replaced, or the
    computed one, if only the stored hash was changed.
    """

    def __init__(self, report: Report, start: Tail, heads: list[Head], last: int | None) -> None:
        self.is_done = False
        self._report, self._last = report, last
        self._position, self._previous = start
        #: The computed hash of a mismatched entry, from which the next one may continue.
        self._alternative: str | None = None
        #: The position of the last matching head.
        self._fits_until = start.position
        #: Position → heads at it, not compared yet.
        self._heads: dict[int, list[Head]] = defaultdict(list)
        for head in heads:
            self._heads[head.position].append(head)
        #: Whether a head mismatched, so that later ones mismatch too.
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
        heads = self._heads.pop(position, [])
        for head in heads:
            if head.hash not in {hash_, self._alternative} and not self._is_other_chain:
                self._is_other_chain = True
                self._report_other_chain(head)
        if heads:
            self._report.heads += len(heads)
            self._fits_until = position

    def _report_other_chain(self, head: Head) -> None:
        """Report that entries since the last matching head were replaced, unless a finding already covers them."""
        since = min(self._fits_until + 1, head.position)
        if not any(since <= finding.position <= head.position for finding in self._report.findings):
            self._report.add(
                since,
                f"{head.name} does not fit: of the entries {since} to {head.position} some were changed, inserted or "
                "removed, and the hashes computed anew",
            )

    def finish(self) -> None:
        """Report heads beyond the last entry: the entries up to them are missing."""
        self._report.last = Tail(self._position, self._previous)
        if self.is_done or self._last is not None or self._report.is_full:
            return
        for position in sorted(position for position in self._heads if position > self._position):
            missing, head = f"{self._position + 1} to {position}", self._heads[position][0]
            self._report.add(self._position + 1, f"the entries {missing} are missing at the end: {head.name} has them")
            return


def _start(report: Report) -> Tail:
    """The start of the chain: the stub of the last pruning, else position 0."""
    stub = stub_get()
    if stub is None:
        return Tail(0, GENESIS)
    report.notes.append(f"the entries up to {stub.position} were pruned")
    return Tail(stub.position, stub.hash)


def _stored_heads(report: Report) -> list[Head]:
    """The genuine stored heads; reports the others. The columns of a head must equal its signed claims."""
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
    """Report unchained entries that are old or have a wrong seal."""
    oldest: datetime.datetime | None = None
    for rows in waiting_rows():
        for row in rows:
            report.waiting += 1
            if entry_is_sealed(row) is False:
                report.add(0, f"the entry with the id {row.id} ({_named(row)}), which is not chained yet, was "
                              "changed or inserted: its seal is wrong")  # fmt: skip
            oldest = oldest or _time(row.at)
    if oldest is not None and (utc_now() - oldest).total_seconds() > MAX_UNCHAINED_SECONDS:
        report.notes.append(f"entries since {oldest:%Y-%m-%d %H:%M:%S} are not chained yet: does a worker run?")


def _check_sources(report: Report) -> None:
    """Report rows of other tables that have no entry."""
    for source in entry_sources:
        for problem in source.problems():
            report.add(0, problem)
            if report.is_full:
                return
        oldest = source.oldest_waiting()
        since = None if oldest is None else _time(oldest)
        if since is not None and (utc_now() - since).total_seconds() > MAX_UNCHAINED_SECONDS:
            report.notes.append(f"changes since {since:%Y-%m-%d %H:%M:%S} have no entry yet: does a worker run?")


def _check_copies(report: Report) -> None:
    """Report entries with equal seals: one is a copy of the other."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT MIN(COALESCE(position, 0)), MAX(COALESCE(position, 0)), MAX(id) FROM {TABLE} "
            f"GROUP BY seal HAVING COUNT(*) > 1 LIMIT {MAX_FINDINGS}"
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
