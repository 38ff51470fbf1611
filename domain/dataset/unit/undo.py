"""Undoes the changes of a block that fails; a script may catch the error and go on (spec 05, 5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from domain.dataset.records.deferred_work import DeferredWork
from domain.dataset.records.record import Record, State, UnitOfWork
from domain.dataset.unit.child_collections import ChildCollections

Key = tuple[str, str]


class UndoneUnit(UnitOfWork, Protocol):
    """The dataset's interface for undoing."""

    child_collections: ChildCollections
    rules_behind: dict[Key, dict[str, None]]


@dataclass(slots=True)
class _Before:
    """A record before its first change in a block. Not frozen, which would take half as long again.

    is_known   whether the dataset had it
    kept       what the dataset's dictionaries had for it (Undo._by_identity), each a copy or None
    """

    record: Record
    is_known: bool
    state: State
    values: dict[str, Any]
    original_values: dict[str, Any]
    custom: dict[str, Any]
    custom_changed: bool
    original_custom: dict[str, Any]
    dirty: set[str]
    by_client: bool
    client_caused: bool
    mutations: int
    kept: tuple[Any, ...]


@dataclass(slots=True)
class _Block:
    """What a block has changed: identity → before (None: nothing). deferred: before the block, if it has deferred."""

    before: dict[Key, _Before | None] = field(default_factory=dict)
    deferred: DeferredWork | None = None


class Undo:
    """The open blocks of a dataset, outermost first. Without one, changes are not recorded.

    A block costs as much as it changes: a script may call a thousand operations on a thousand changed entities.
    """

    def __init__(self, dataset: UndoneUnit) -> None:
        self._dataset = dataset
        self.blocks: list[_Block] = []
        #: Counts the blocks that have been undone: copies of records are out of date.
        self.count = 0
        #: Identity → names that a completion has taken out of `dirty` for a while.
        self.set_aside: dict[Key, set[str]] = {}

    @contextmanager
    def block(self) -> Iterator[None]:
        """If the block fails, undo its changes of entities and its deferred work since the last commit or discard."""
        block = _Block()
        self.blocks.append(block)
        try:
            yield
        except BaseException:
            self.blocks.pop()
            self._restore(block)
            raise
        self.blocks.pop()
        if self.blocks:
            outer = self.blocks[-1]
            for key, before in block.before.items():
                outer.before.setdefault(key, before)
            if outer.deferred is None:
                outer.deferred = block.deferred

    def note(self, record: Record) -> None:
        """Record an entity that is about to change."""
        if self.blocks and record.key not in self.blocks[-1].before:
            self.blocks[-1].before[record.key] = self._state(record)

    def note_new(self, key: Key) -> None:
        """Record that an entity is about to be created."""
        if self.blocks and key not in self.blocks[-1].before:
            known = self._dataset.records.get(key)
            self.blocks[-1].before[key] = None if known is None else self._state(known)

    def note_deferred(self) -> None:
        """Record that work is about to be deferred."""
        if self.blocks and self.blocks[-1].deferred is None:
            self.blocks[-1].deferred = self._dataset.deferred.copy()

    def end(self) -> None:
        """Forget what has been recorded: a commit or a discard cannot be undone."""
        for block in self.blocks:
            block.before, block.deferred = {}, None

    @property
    def _by_identity(self) -> tuple[dict[Key, Any], ...]:
        dataset = self._dataset
        return dataset.authorities, dataset.rules_behind, dataset.stated_measures, dataset.behaviour_values

    def _state(self, record: Record) -> _Before:
        key = record.key
        return _Before(
            record,
            self._dataset.records.get(key) is record,
            record.state,
            dict(record.values),
            dict(record.original_values),
            record.custom,
            record.custom_changed,
            record.original_custom,
            record.dirty | self.set_aside.get(key, set()),
            record.by_client,
            record.client_caused,
            record.mutations,
            tuple(known[key].copy() if key in known else None for known in self._by_identity),
        )

    def _restore(self, block: _Block) -> None:
        for key, before in block.before.items():
            if before is None:
                self._remove(key)
            else:
                self._put_back(before)
        if block.deferred is not None:
            self._dataset.deferred.restore(block.deferred)
        self.count += 1

    def _remove(self, key: Key) -> None:
        for known in self._by_identity:
            known.pop(key, None)
        created = self._dataset.records.pop(key, None)
        if created is not None:
            # For those who still have the object.
            created.state = "Deleted"
            self._dataset.child_collections.forget(key)

    def _put_back(self, before: _Before) -> None:
        dataset, record = self._dataset, before.record
        record.state, record.values, record.original_values = before.state, before.values, before.original_values
        record.custom, record.custom_changed = before.custom, before.custom_changed
        record.original_custom, record.dirty = before.original_custom, before.dirty
        record.by_client, record.client_caused = before.by_client, before.client_caused
        # As if never changed: rules of the commit that try and fail in each round are no loop.
        record.mutations = before.mutations
        for known, kept in zip(self._by_identity, before.kept, strict=True):
            if kept is None:
                known.pop(record.key, None)
            else:
                known[record.key] = kept
        if before.is_known and dataset.records.get(record.key) is not record:
            dataset.records[record.key] = record
            dataset.child_collections.attach(record)
