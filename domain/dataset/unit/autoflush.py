"""Autoflush: pending changes are written before a query and rolled back after it, so that the query sees them.

One rule without exceptions (ARCHITECTURE, "A Domain transaction"): before a statement runs, the pending entities of
every table that it names are in the database. The tables are read from the statement's text, so joins, row policies,
display texts and search need no separate list; other tables cost nothing.

A read of a caller sees the entities with the values that a commit would fill in (domain.dataset.commit.commit_preview).
An entity may still lack values that its columns require. Its row is written with substitutes, which statements read as
NULL (domain.dataset.unit.missing_values). New entities of this kind are visible to reads that start from a key, and not
to set queries (spec 03, 3.2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol

from django.db import IntegrityError, connection, transaction

from domain.dataset.checks.database_errors import duplicate_error
from domain.dataset.checks.limits import check_limits
from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.pending_source import PendingUnit
from domain.dataset.records.record import Record
from domain.dataset.records.row_writer import insert_records, owners_of, required_of, targets_of
from domain.dataset.tables import reference_rows
from domain.dataset.tables.row_storage import row_storage_of
from domain.dataset.unit.missing_values import MissingValues
from domain.model.registry import repositories
from domain.model.repository import Repository

_QUOTED = re.compile(r'"([a-z0-9_]+)"')


class _Rollback(Exception):
    """Raised to roll back a savepoint."""


@contextmanager
def flushed(
    dataset: PendingUnit, *, around: str | None = None, preview: PendingPreview | None = None
) -> Iterator[None]:
    """Within the block, statements on this connection see the dataset's pending changes.

    New entities without required values are left out, and so are entities that refer to them.

    around      guid of an entity; it, its parts and the targets of their references are visible in any case
    preview   copies of the dataset's entities that are shown in their place
    """
    with rolled_back() as begin, connection.execute_wrapper(_Shown(dataset, around, preview, begin)):
        yield


@contextmanager
def rolled_back() -> Iterator[Callable[[], None]]:
    """Yields a function that begins a savepoint, unless it has begun; it is rolled back at the end of the block."""
    savepoint: transaction.Atomic | None = None

    def begin() -> None:
        nonlocal savepoint
        if savepoint is None:
            entering = transaction.atomic()
            entering.__enter__()
            savepoint = entering  # only once entered: its exit would otherwise end the outer transaction

    try:
        with reference_rows.bypassed():
            yield begin
    finally:
        if savepoint is not None:
            savepoint.__exit__(_Rollback, _Rollback(), None)


class PendingPreview(PendingUnit, Protocol):
    """Copies of a dataset's pending entities, with the values that a commit would fill in."""

    def touch(self, tables: Collection[str], names: Sequence[str]) -> Sequence[Record]:
        """The entities in these tables, of these repositories, and those that their values depend on, that are still to
        be filled in.
        """
        ...

    def fill_in(self, touched: Sequence[Record]) -> None:
        """Fill in their values. May write: a savepoint is open, and will be rolled back."""
        ...


class _Shown:
    """The rows written so far for the statements of one `flushed` block."""

    def __init__(
        self, dataset: PendingUnit, around: str | None, preview: PendingPreview | None, begin: Callable[[], None]
    ) -> None:
        self._dataset = dataset if preview is None else preview
        self._preview = preview
        #: Guids of entities that are visible in any case; each flushed table adds related ones.
        self._around = set() if around is None else {around}
        self._absent = MissingValues()
        self._tables: set[str] = set()
        self._records: set[tuple[str, str]] = set()
        self._begin = begin
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
        names = _repositories_of(tables, repositories.generation)
        if dataset.pending_source is not None:
            dataset.pending_source.load_repositories(names)
        while self._preview is not None and (touched := self._preview.touch(tables, names)):
            self._begin()
            self._preview.fill_in(touched)
        pending = [
            record
            for record in dataset.changed()
            if record.key not in self._records and any(table in tables for table, _ in record.repository.tables)
        ]
        if not pending:
            return
        self._records.update(record.key for record in pending)
        self._begin()
        _write(dataset, pending, self._absent, self._around)


def _write(dataset: PendingUnit, pending: Sequence[Record], missing_values: MissingValues, around: set[str]) -> None:
    """Write the records; adds missing required values to `missing_values`, and related entities to `around`.

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
        # Whether an entity still refers to a deleted one is checked at commit, not by a query.
        for repository, ids in _by_repository(plan.deleted):
            row_storage_of(repository).delete(ids)
        with missing_values.filled((record, _lacking(record)) for record in (*plan.inserted, *plan.updated)):
            insert_records(plan.inserted, dataset.now())
            for record in plan.updated:
                changes = {name: record.values[name] for name in record.original_values}
                custom = record.custom if record.custom_changed else None
                row_storage_of(record.repository).update(record.id, changes, custom, None)
    except IntegrityError as exc:
        known = duplicate_error(exc, plan)
        if known is exc:
            raise
        raise known from exc


def _left_out(dataset: PendingUnit, pending: Sequence[Record], around: set[str]) -> set[str]:
    """Guids of new entities that lack required values, and of all that refer to them, directly or indirectly.

    Those in `around` are not left out, nor are their parts and targets; these are added to it.
    """
    involved = {record.id: record for record in pending if record.state != "Deleted"}
    waiting = list(involved.values())
    while waiting:
        targets = {target for record in waiting for target in targets_of(record)} - involved.keys()
        if dataset.pending_source is not None and targets:
            dataset.pending_source.load_new(targets)
        waiting = [record for record in dataset.new_records(targets) if record.id not in involved]
        involved.update((record.id, record) for record in waiting)
    if around:
        _add_related(around, involved.values())
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


def _add_related(around: set[str], records: Iterable[Record]) -> None:
    """Add the guids of the entities' targets and collection members, directly or indirectly."""
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
    """API names of the required attributes without a value."""
    values = record.values
    return [name for name in required_of(record.repository) if values.get(name) is None]


def _by_repository(records: Iterable[Record]) -> list[tuple[Repository[Any], list[str]]]:
    result: dict[str, tuple[Repository[Any], list[str]]] = {}
    for record in records:
        result.setdefault(record.repository.name, (record.repository, []))[1].append(record.id)
    return list(result.values())


@lru_cache(maxsize=4096)
def _entity_tables(sql: str, generation: int) -> frozenset[str]:
    """Tables of entities that the statement names, and those behind views. Both databases quote our names alike."""
    known = _tables(generation)
    named = known.keys() & set(_QUOTED.findall(sql))
    viewed = (each for table in named for name in known[table] for each in repositories[name].viewed)
    return frozenset(named.union(table for each in viewed for table, _ in each.tables))


@lru_cache(maxsize=4096)
def _repositories_of(tables: frozenset[str], generation: int) -> tuple[str, ...]:
    """Names of the concrete repositories with rows in one of the tables."""
    known = _tables(generation)
    return tuple(dict.fromkeys(name for table in sorted(tables) for name in known[table]))


@lru_cache(maxsize=1)
def _tables(generation: int) -> dict[str, list[str]]:
    """Table → names of the repositories with rows in it."""
    result: dict[str, list[str]] = {}
    for repository in repositories:
        for table, _ in repository.tables:
            result.setdefault(table, []).append(repository.name)
    return result


__all__ = ["flushed"]
