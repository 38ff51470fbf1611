"""Tracks the entities that a script has received, and their changes since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.model.repository import Repository
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Version of a record as the script received it: change count, state, version.
Seen = tuple[int, str, int]
Key = tuple[str, str]


@dataclass(slots=True)
class Entry:
    """An entity that the script has received. `record` is replaced after the dataset was reloaded."""

    record: Record
    key: Key
    seen: Seen


@dataclass(slots=True)
class Changes:
    """Changes since the last read: `changed` has new values, `gone` was deleted, `stale` must be read again."""

    changed: list[Record]
    gone: list[int]
    stale: list[int]


class Handles:
    """Handle ↔ record for one run."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._entries: list[Entry] = []
        self._by_key: dict[Key, int] = {}

    def show(self, record: Record) -> int:
        """The record's handle; marks its current state as seen."""
        key = record.key
        handle = self._by_key.get(key)
        if handle is None:
            handle = self._by_key[key] = len(self._entries)
            self._entries.append(Entry(record, key, _seen(record)))
        else:
            entry = self._entries[handle]
            entry.record, entry.seen = record, _seen(record)
        return handle

    def record(self, handle: Any) -> Record:
        """The record of a handle. Raises NotFound if it was deleted."""
        entry = self._entry(handle)
        result = self._current(entry)
        if result is None:
            raise _missing(entry.record.repository, entry.record.id)
        return result

    def known(self, handles: list[Any]) -> list[Record | None]:
        """The records of handles, with one query for all stale ones; None for deleted ones."""
        if len(handles) > len(self._entries):  # the prelude sends no handle twice
            raise _unknown(f"{len(handles)} entities")
        entries = [self._entry(handle) for handle in handles]
        absent: dict[Repository[Any], list[str]] = {}
        for entry in entries:
            if self.dataset.records.get(entry.key) is not entry.record:
                absent.setdefault(entry.record.repository, []).append(entry.record.id)
        for repository, ids in absent.items():
            self.dataset.load_many(repository, ids)
        return [self._current(entry) for entry in entries]

    def present(self, handles: list[Any]) -> list[Record]:
        """As `known`. Raises NotFound for deleted ones."""
        result = self.known(handles)
        for handle, record in zip(handles, result, strict=True):
            if record is None:
                self.record(handle)
        return [record for record in result if record is not None]

    def mark_seen(self, record: Record) -> None:
        """Mark the record's last change as seen."""
        handle = self._by_key.get(record.key)
        if handle is not None:
            self._entries[handle].seen = _seen(record)

    def changes(self) -> Changes:
        """Changes, not sent yet, of entities that the script has received."""
        result = Changes([], [], [])
        records = self.dataset.records
        for handle, entry in enumerate(self._entries):
            record = entry.record
            current = records.get(entry.key)
            if current is record:
                if entry.seen != (record.mutations, record.state, record.version):
                    entry.seen = _seen(record)
                    result.changed.append(record)
            elif record.state == "Deleted":
                if entry.seen[1] != "Gone":
                    entry.seen = (0, "Gone", 0)
                    result.gone.append(handle)
            elif entry.seen[1] != "Stale":
                entry.seen = (0, "Stale", 0)
                result.stale.append(handle)
        return result

    def gone(self, handles: Sequence[int], records: Iterable[Record | None]) -> list[int]:
        """Handles without a record."""
        return [handle for handle, record in zip(handles, records, strict=True) if record is None]

    def _entry(self, handle: Any) -> Entry:
        if isinstance(handle, bool) or not isinstance(handle, int) or not 0 <= handle < len(self._entries):
            raise _unknown(handle)
        return self._entries[handle]

    def _current(self, entry: Entry) -> Record | None:
        result = self.dataset.records.get(entry.key)
        if result is None:
            if entry.record.state == "Deleted":
                return None
            result = self.dataset.load(entry.record.repository, entry.record.id)
        if result is not None:
            entry.record = result
        return result


def _seen(record: Record) -> Seen:
    return (record.mutations, record.state, record.version)


def _missing(repository: Repository[Any], id: str) -> errors.NotFound:
    return errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, id)


def _unknown(handle: Any) -> errors.BadRequest:
    return errors.BadRequest(errors.INVALID_LITERAL, handle, "entity", Message("this call"))
