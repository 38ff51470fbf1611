"""Autoflush: queries see pending changes because these are written before them and rolled back behind them.

One rule without exceptions (ARCHITECTURE, "A Domain transaction"): before a statement runs, the pending entities of
every table that it names are in the database. What a statement names is read from its text, so joins, row policies,
display texts and search need no list of their own; tables that no statement names cost nothing.

A pending entity may lack values that its columns require. Its row is written with stand-ins for these, and statements
read NULL in their place (domain.dataset.unit.absent). New entities of this kind are shown to reads that start from a
key, and kept out of set queries (spec 03, 3.2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from django.db import IntegrityError, connection, transaction

from domain.dataset.checks.limits import check_limits
from domain.dataset.checks.unique_violations import duplicate_error
from domain.dataset.records.record import CommitResult, Record, UnitOfWork
from domain.dataset.records.row_writer import insert_records, owners_of, required_of, targets_of
from domain.dataset.tables.storage import storage_of
from domain.dataset.unit.absent import Absent
from domain.model.registry import repositories
from domain.model.repository import Repository

_QUOTED = re.compile(r'"([a-z0-9_]+)"')


class _Rollback(Exception):
    """Ends a savepoint that must leave nothing."""


@contextmanager
def flushed(dataset: UnitOfWork, *, around: str | None = None) -> Iterator[None]:
    """Within, statements on this connection see the dataset's pending changes; afterwards these are gone again.

    New entities that lack required values stay out, and so does what refers to them.

    around: guid of an entity; it, what belongs to it and what these refer to are seen whatever they lack.
    """
    shown = _Shown(dataset, around)
    try:
        with connection.execute_wrapper(shown):
            yield
    finally:
        shown.undo()


class _Shown:
    """What has been written so far for the statements of one `flushed` block."""

    def __init__(self, dataset: UnitOfWork, around: str | None) -> None:
        self._dataset = dataset
        #: Guids of what is seen whatever it lacks; each table shows more of it.
        self._around = set() if around is None else {around}
        self._absent = Absent()
        self._tables: set[str] = set()
        self._records: set[tuple[str, str]] = set()
        self._savepoint: transaction.Atomic | None = None
        self._writing = False

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        if not self._writing:
            tables = _entity_tables(str(sql), repositories.generation) - self._tables
            if tables:
                self._writing = True
                try:
                    self._show(tables)
                finally:
                    self._writing = False
            sql = self._absent.hidden_in(sql)
        return execute(sql, params, many, context)

    def _show(self, tables: frozenset[str]) -> None:
        self._tables |= tables
        dataset = self._dataset
        if dataset.pending_source is not None:
            dataset.pending_source.load_repositories(dataset, _repositories_of(tables, repositories.generation))
        pending = [
            record
            for record in dataset.changed()
            if record.key not in self._records and any(table in tables for table, _ in record.repository.tables)
        ]
        if not pending:
            return
        self._records.update(record.key for record in pending)
        if self._savepoint is None:
            self._savepoint = transaction.atomic()
            self._savepoint.__enter__()
        _write(dataset, pending, self._absent, self._around)

    def undo(self) -> None:
        """Take everything back."""
        if self._savepoint is not None:
            self._savepoint.__exit__(_Rollback, _Rollback(), None)


def _write(dataset: UnitOfWork, pending: Sequence[Record], absent: Absent, around: set[str]) -> None:
    """Write the records as they are; `absent` notes the required values that they lack, `around` what it leads to.

    Raises Refused: DUPLICATE_VALUE where two entities cannot both be there, VALUE_TOO_LONG and VALUE_OUT_OF_RANGE where
    a column does not hold the value.
    """

    out = _left_out(dataset, pending, around)
    plan = CommitResult()
    for record in pending:
        if record.state == "Deleted":
            plan.deleted.append(record)
        elif record.id not in out:
            check_limits(record)
            (plan.inserted if record.state == "Added" else plan.updated).append(record)
    try:
        # Whether something still refers to what is deleted is a question of the commit, not of a query.
        for repository, ids in _by_repository(plan.deleted):
            storage_of(repository).delete(ids)
        with absent.filled((record, _lacking(record)) for record in (*plan.inserted, *plan.updated)):
            insert_records(plan.inserted, dataset.now())
            for record in plan.updated:
                changes = {name: record.values[name] for name in record.original_values}
                custom = record.custom if record.custom_changed else None
                storage_of(record.repository).update(record.id, changes, custom, None)
    except IntegrityError as exc:
        told = duplicate_error(exc, plan)
        if told is exc:
            raise
        raise told from exc


def _left_out(dataset: UnitOfWork, pending: Sequence[Record], around: set[str]) -> set[str]:
    """Guids of new entities that lack required values, and of all that refers to them, near or far.

    Those in `around` are not left out, nor is what belongs to them or what they refer to; these are added to it.
    """
    involved = {record.id: record for record in pending if record.state != "Deleted"}
    waiting = list(involved.values())
    while waiting:
        targets = {target for record in waiting for target in targets_of(record)} - involved.keys()
        if dataset.pending_source is not None and targets:
            dataset.pending_source.load_new(dataset, targets)
        waiting = [record for record in dataset.new_records(targets) if record.id not in involved]
        involved.update((record.id, record) for record in waiting)
    if around:
        _spread(around, involved.values())
    referrers: dict[str, list[str]] = {}
    for record in involved.values():
        for target in targets_of(record):
            if target in involved and target != record.id:
                referrers.setdefault(target, []).append(record.id)
    out: set[str] = set()
    spreading = [record.id for record in involved.values() if record.state == "Added" and _lacking(record)]
    while spreading:
        id = spreading.pop()
        if id not in out and id not in around:
            out.add(id)
            spreading.extend(referrers.get(id, ()))
    return out


def _spread(around: set[str], records: Iterable[Record]) -> None:
    """Add the guids of what the entities refer to and of the members of their collections, near or far."""
    leads_to: dict[str, set[str]] = {}
    for record in records:
        leads_to.setdefault(record.id, set()).update(targets_of(record))
        for owner in owners_of(record):
            leads_to.setdefault(owner, set()).add(record.id)
    spreading = list(around)
    while spreading:
        fresh = leads_to.get(spreading.pop(), set()) - around
        around |= fresh
        spreading += fresh


def _lacking(record: Record) -> list[str]:
    """API names of the required attributes that have no value."""
    values = record.values
    return [name for name in required_of(record.repository) if values.get(name) is None]


def _by_repository(records: Iterable[Record]) -> list[tuple[Repository[Any], list[str]]]:
    found: dict[str, tuple[Repository[Any], list[str]]] = {}
    for record in records:
        found.setdefault(record.repository.name, (record.repository, []))[1].append(record.id)
    return list(found.values())


@lru_cache(maxsize=4096)
def _entity_tables(sql: str, generation: int) -> frozenset[str]:
    """Tables of entities that the statement names. Both databases quote every name of ours alike."""
    return frozenset(_tables(generation).keys() & set(_QUOTED.findall(sql)))


@lru_cache(maxsize=4096)
def _repositories_of(tables: frozenset[str], generation: int) -> tuple[str, ...]:
    """Names of the concrete repositories that keep rows in one of the tables."""
    known = _tables(generation)
    return tuple(dict.fromkeys(name for table in sorted(tables) for name in known[table]))


@lru_cache(maxsize=1)
def _tables(generation: int) -> dict[str, list[str]]:
    """Table → names of the repositories that keep rows in it."""
    found: dict[str, list[str]] = {}
    for repository in repositories:
        for table, _ in repository.tables:
            found.setdefault(table, []).append(repository.name)
    return found


__all__ = ["flushed"]
