"""Covers the change history by the audit chain (spec 12.4), and compares the two.

A commit writes only its change set. Later the chaining process writes an audit entry for each committed change set that
has none, with a checksum of its row and, for each repository, of the changes in it. The set stores the id of its entry,
so the order of commits does not matter and a set without an entry is found. Before retention deletes changes, it writes
an entry: older changes of these repositories may be missing.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.db import connection
from django.utils.translation import gettext_lazy as _

from audit.actors import PLATFORM, Actor
from audit.chain import chain_lock, stub_get
from audit.hashing import canonical, entry_is_sealed, moment
from audit.kinds import ENTITY_MANAGEMENT, EntryKind, Ocsf, StoredEntry, entry_kinds
from audit.models import AuditEntry
from audit.record import entry_of
from audit.rows import TABLE as ENTRIES
from audit.rows import raw_rows, rows_of_kind, rows_read
from audit.sources import EntrySource
from domain.dataset.tables.history import ObjectChange, ObjectChangeset
from foundation.batches import batched
from foundation.guids import is_guid

#: Change sets that one transaction covers.
SETS_AT_ONCE = 100
#: Maximum changes of a set that its entry lists one by one; for larger sets it has a checksum per repository.
MOST_NAMED = 200
#: Rows read by one statement.
STEP = 1_000
SETS, CHANGES = ObjectChangeset._meta.db_table, ObjectChange._meta.db_table
#: The hashed columns of a row, in this order: stored checksums depend on it.
SET_COLUMNS = (
    "id", "object_version", "custom_property_values", "external_id", "external_system",
    "aggregate_last_update_time_utc", "additional_data_json", "change_time_utc", "application", "reason", "request_id",
    "session_id", "user_id", "user_login",
)  # fmt: skip
CHANGE_COLUMNS = (
    "id", "object_version", "custom_property_values", "changeset_id", "change_time_utc", "item_version", "operation",
    "repository_name", "entity_item_id", "root_item_id", "rules", "changes", "old_values",
)  # fmt: skip
_TIMES = frozenset({"aggregate_last_update_time_utc", "change_time_utc"})
_SET_TIME, _SET_LOGIN = SET_COLUMNS.index("change_time_utc"), SET_COLUMNS.index("user_login")
_CHANGE_SET, _CHANGE_REPOSITORY = CHANGE_COLUMNS.index("changeset_id"), CHANGE_COLUMNS.index("repository_name")
_NOTHING: dict[str, Any] = {"count": 0, "sha256": "", "changes": {}}


def _checksum(row: Sequence[Any], columns: Sequence[str]) -> str:
    """SHA-256 of the JSON array of the values: guids as text, times in UTC with microseconds."""
    try:
        values = [
            moment(value) if name in _TIMES and value is not None else value
            for name, value in zip(columns, row, strict=True)
        ]
        body = orjson.dumps(values)
    except (TypeError, AttributeError):
        # The row was tampered with: its values have types that JSON does not have.
        body = repr(row).encode(errors="backslashreplace")
    return hashlib.sha256(body).hexdigest()


def _text(value: object) -> str:
    """A value as text for JSON, also for values of tampered rows."""
    return str(value).encode(errors="backslashreplace").decode()


@dataclass(slots=True)
class _Part:
    """The changes of one repository in a set. digests: id → checksum of the first MOST_NAMED changes."""

    count: int = 0
    sum: Any = field(default_factory=hashlib.sha256)
    digests: dict[str, str] = field(default_factory=dict)

    def add(self, id: str, checksum: str) -> None:
        """Add a change. Call in the order of the ids."""
        self.count += 1
        self.sum.update(f"{id} {checksum}\n".encode())
        if self.count <= MOST_NAMED:
            self.digests[id] = checksum


@dataclass(slots=True)
class _Set:
    """A change set as it is stored."""

    time: str
    login: str
    checksum: str
    parts: dict[str, _Part] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """The content of its audit entry."""
        is_small = sum(part.count for part in self.parts.values()) <= MOST_NAMED
        parts: dict[str, dict[str, Any]] = {}
        for name, part in self.parts.items():
            parts[name] = {"count": part.count, "sha256": part.sum.hexdigest()}
            if is_small:
                parts[name]["changes"] = part.digests
        return {"changeTimeUtc": self.time, "sha256": self.checksum, "parts": parts}


def _sets(rows: Iterable[Sequence[Any]]) -> dict[str, _Set]:
    """Id → change set, from rows of change sets joined with their changes."""
    ids, result = [], {}
    for row in rows:
        ids.append(row[0])
        time, login = _text(moment(row[_SET_TIME])), _text(row[_SET_LOGIN])
        result[_text(row[0])] = _Set(time, login, _checksum(row, SET_COLUMNS))
    within = f"changeset_id IN ({', '.join(['%s'] * len(ids))})"
    condition, parameters = within, ids
    while ids:
        step = raw_rows(CHANGES, CHANGE_COLUMNS, _TIMES, condition, "changeset_id, id", parameters, STEP)
        for row in step:
            part = result[_text(row[_CHANGE_SET])].parts.setdefault(_text(row[_CHANGE_REPOSITORY]), _Part())
            part.add(_text(row[0]), _checksum(row, CHANGE_COLUMNS))
        if len(step) < STEP:
            break
        condition = f"{within} AND (changeset_id, id) > (%s, %s)"
        parameters = [*ids, step[-1][_CHANGE_SET], step[-1][0]]
    return result


# --- entries ----------------------------------------------------------------------------------------------------------


class ChangeSets(EntrySource):
    """The change sets of the history."""

    def write(self) -> int:
        rows = raw_rows(SETS, SET_COLUMNS, _TIMES, "audit_entry IS NULL", "change_time_utc", (), SETS_AT_ONCE)
        if not rows:
            return 0
        # Before the transaction: SQLite has one writer at a time, and a set never changes.
        sets = _sets(rows)
        with chain_lock() as has_lock:
            if not has_lock:
                return 0
            ids = [row[0] for row in rows]
            condition = f"audit_entry IS NULL AND id IN ({', '.join(['%s'] * len(ids))})"
            waiting = [row[0] for row in raw_rows(SETS, ("id",), (), condition, "change_time_utc", ids)]
            entries = []
            for id in waiting:
                described = sets[_text(id)]
                actor = Actor(described.login) if described.login else PLATFORM
                entries.append(entry_of(ChangeSetMade, actor, _text(id), described.content()))
            AuditEntry.objects.bulk_create(entries)
            with connection.cursor() as cursor:
                marks = [(entry.pk, id) for entry, id in zip(entries, waiting, strict=True)]
                cursor.executemany(f"UPDATE {SETS} SET audit_entry = %s WHERE id = %s", marks)
        return len(waiting)

    def problems(self) -> Iterator[str]:
        condition, parameters = "audit_entry IS NOT NULL", list[Any]()
        columns = ("id", "audit_entry", "change_time_utc")
        while rows := raw_rows(SETS, columns, _TIMES, condition, "id", parameters, STEP):
            yield from _without_entry(rows)
            condition, parameters = "audit_entry IS NOT NULL AND id > %s", [rows[-1][0]]
        orphans = f"NOT EXISTS (SELECT 1 FROM {SETS} s WHERE s.id = {CHANGES}.changeset_id)"
        for id, name in raw_rows(CHANGES, ("id", "repository_name"), (), orphans, "id", (), STEP):
            yield f"the change {_text(id)} of {_text(name)} was inserted: it is in no change set"

    def oldest_waiting(self) -> datetime.datetime | str | None:
        rows = raw_rows(SETS, ("change_time_utc",), _TIMES, "audit_entry IS NULL", "change_time_utc", (), 1)
        return rows[0][0] if rows else None


def _without_entry(rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """The sets whose audit_entry is not the id of their own entry."""
    marks = [mark for _id, mark, _at in rows if isinstance(mark, int)]
    condition = f"id IN ({', '.join(['%s'] * len(marks))})"
    stored = raw_rows(ENTRIES, ("id", "kind", "subject"), (), condition, "id", marks) if marks else []
    covered = {id: subject for id, kind, subject in stored if kind == ChangeSetMade.name}
    known = {id for id, _kind, _subject in stored}
    lost = [(id, mark, at) for id, mark, at in rows if covered.get(mark) != _text(id)]
    if not lost:
        return
    pruned_until = _entries_pruned_until()
    for id, mark, at in lost:
        if mark in known or moment(at) >= pruned_until:
            yield f"the change set {_text(id)} of {_text(at):.19} has no entry: it was inserted, or its mark changed"


def _entries_pruned_until() -> str:
    """Before this time, entries of change sets may have been pruned with the chain; "" if none was.

    A set is older than its entry, and a pruned entry is older than the first kept entry.
    """
    stub = stub_get()
    if stub is None:
        return ""
    condition = "kind = %s AND (position IS NULL OR position > %s)"
    first = rows_read(condition, "id", [ChangeSetMade.name, stub.position], 1)
    return moment(first[0].at if first else stub.at)


# --- kinds ------------------------------------------------------------------------------------------------------------


@entry_kinds.register
class HistoryPruned(EntryKind):
    """Entry: retention deletes changes. before: time; changes: repository → number of changes before it."""

    name = "history.pruned"
    title = _("Old changes deleted")
    ocsf = Ocsf(ENTITY_MANAGEMENT, 4)


@entry_kinds.register
class ChangeSetMade(EntryKind):
    """Entry: a change set of the history, by the user who made it.

    sha256         of its row
    changeTimeUtc  time of the commit
    parts          repository → count and sha256 of its changes; of small sets the checksum of each change
    """

    name = "changeset.made"
    title = _("Change set")
    ocsf = Ocsf(ENTITY_MANAGEMENT, 3)

    def problems(self, entries: Iterable[StoredEntry]) -> Iterator[tuple[int, str]]:
        pruned = _Pruned()
        for step in batched(entries, SETS_AT_ONCE):
            ids = [entry.subject for entry in step if is_guid(str(entry.subject))]
            condition = f"id IN ({', '.join(['%s'] * len(ids))})"
            stored = _sets(raw_rows(SETS, SET_COLUMNS, _TIMES, condition, "id", ids)) if ids else {}
            for entry in step:
                try:
                    problems = list(_differences(entry, stored.get(entry.subject), pruned))
                except (ValueError, KeyError, TypeError, AttributeError):
                    problems = ["the content of the entry is not that of a change set"]
                yield from ((entry.position, problem) for problem in problems)


class _Pruned:
    """The time before which changes of each repository may be missing, from HistoryPruned entries with a valid seal."""

    def __init__(self) -> None:
        self._until: dict[str, str] = {}
        self._read_to = 0

    def may_miss(self, repository: str, time: str) -> bool:
        """Whether retention may have deleted the changes of this time."""
        if time >= self._until.get(repository, ""):
            self._read()  # also entries written since verification began
        return time < self._until.get(repository, "")

    def _read(self) -> None:
        for step in rows_of_kind(HistoryPruned.name, self._read_to):
            self._read_to = step[-1].id
            for row in step:
                if entry_is_sealed(row) is False:
                    continue
                try:
                    content = orjson.loads(row.content)
                    for name in content["changes"]:
                        self._until[name] = max(self._until.get(name, ""), content["before"])
                except (ValueError, KeyError, TypeError):
                    continue  # the seal's key is unknown; the report counts such seals


def _differences(entry: StoredEntry, found: _Set | None, pruned: _Pruned) -> Iterator[str]:
    """Differences between the entry and the stored set. May raise several errors for a tampered entry."""
    now = None if found is None else found.content()
    if now is not None and canonical(now) == entry.content:
        return
    set_ = f"the change set {entry.subject}"
    recorded = orjson.loads(entry.content)
    time, parts = recorded["changeTimeUtc"], recorded["parts"]
    if now is None:
        if not all(pruned.may_miss(name, time) for name in parts):
            yield f"{set_} of {time} is missing"
        return
    if now["sha256"] != recorded["sha256"]:
        yield f"{set_} of {time} was changed"
    for name in sorted({*parts, *now["parts"]}):
        before, after = parts.get(name, _NOTHING), now["parts"].get(name, _NOTHING)
        if (before["count"], before["sha256"]) != (after["count"], after["sha256"]):
            yield from _part_differences(name, before, after, set_, may_miss=pruned.may_miss(name, time))


def _part_differences(
    name: str, before: dict[str, Any], after: dict[str, Any], set_: str, *, may_miss: bool
) -> Iterator[str]:
    if "changes" not in before or "changes" not in after:
        if not (may_miss and after["count"] < before["count"]):
            yield f"{set_} has other changes of {name} than its entry: {after['count']}, once {before['count']}"
        return
    once, now = before["changes"], after["changes"]
    for id in sorted({*once, *now}):
        if id not in once:
            yield f"the change {id} of {name} was inserted into {set_}"
        elif id not in now:
            if not may_miss:
                yield f"the change {id} of {name} is missing in {set_}"
        elif once[id] != now[id]:
            yield f"the change {id} of {name} in {set_} was changed"
