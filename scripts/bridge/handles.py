"""Which entities a script knows, and what changed since it saw them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record
from domain.model.repository import Repository
from foundation import errors
from foundation.phrases import Phrase

#: What tells whether a record is as the script saw it: changes so far, state, version.
Seen = tuple[int, str, int]
Key = tuple[str, str]


@dataclass(slots=True)
class Entry:
    """One entity that the script was shown. `record` is replaced when the dataset has been emptied meanwhile."""

    record: Record
    key: Key
    seen: Seen


@dataclass(slots=True)
class Changes:
    """Since the script looked: `changed` is there with other values, `gone` was deleted, `stale` must be read again."""

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
        """The record's handle; from now on the script knows it as it is."""
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
        """What a handle stands for. Raises NotFound when it is not there any more."""
        entry = self._entry(handle)
        found = self._current(entry)
        if found is None:
            raise _missing(entry.record.repository, entry.record.id)
        return found

    def known(self, handles: list[Any]) -> list[Record | None]:
        """What handles stand for, with one query for all that must be read again; None for what is gone."""
        if len(handles) > len(self._entries):  # an honest prelude asks for none twice
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
        """As `known`. Raises NotFound when one is gone."""
        found = self.known(handles)
        for handle, record in zip(handles, found, strict=True):
            if record is None:
                self.record(handle)
        return [record for record in found if record is not None]

    def saw(self, record: Record) -> None:
        """The script has been told of the record's last change."""
        handle = self._by_key.get(record.key)
        if handle is not None:
            self._entries[handle].seen = _seen(record)

    def changes(self) -> Changes:
        """What the script does not know yet. Records that it was never shown are none of its business."""
        found = Changes([], [], [])
        records = self.dataset.records
        for handle, entry in enumerate(self._entries):
            record = entry.record
            current = records.get(entry.key)
            if current is record:
                if entry.seen != (record.mutations, record.state, record.version):
                    entry.seen = _seen(record)
                    found.changed.append(record)
            elif record.state == "Deleted":
                if entry.seen[1] != "Gone":
                    entry.seen = (0, "Gone", 0)
                    found.gone.append(handle)
            elif entry.seen[1] != "Stale":
                entry.seen = (0, "Stale", 0)
                found.stale.append(handle)
        return found

    def gone(self, handles: Sequence[int], records: Iterable[Record | None]) -> list[int]:
        """The handles whose record is None."""
        return [handle for handle, record in zip(handles, records, strict=True) if record is None]

    def _entry(self, handle: Any) -> Entry:
        if isinstance(handle, bool) or not isinstance(handle, int) or not 0 <= handle < len(self._entries):
            raise _unknown(handle)
        return self._entries[handle]

    def _current(self, entry: Entry) -> Record | None:
        found = self.dataset.records.get(entry.key)
        if found is None:
            if entry.record.state == "Deleted":
                return None
            found = self.dataset.load(entry.record.repository, entry.record.id)
        if found is not None:
            entry.record = found
        return found


def _seen(record: Record) -> Seen:
    return (record.mutations, record.state, record.version)


def _missing(repository: Repository[Any], id: str) -> errors.NotFound:
    return errors.NotFound(errors.ENTITY_NOT_FOUND, repository.entity_type, id)


def _unknown(handle: Any) -> errors.BadRequest:
    return errors.BadRequest(errors.INVALID_LITERAL, handle, "entity", Phrase("this call"))
