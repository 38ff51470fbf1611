"""Loads entities for scripts, whole lists at a time and with the caller's rights (spec 01, 1.7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.db import connection, transaction

from domain.dataset.checks import access
from domain.dataset.checks.currencies_and_units import effective_measure
from domain.dataset.dataset import Dataset
from domain.dataset.records.record import Record, UnitOfWork
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query import select_ids, select_rows
from domain.query.base.access import Access
from foundation import errors


def query(dataset: Dataset, repository: Repository[Any], filter: str, orderby: str, limit: int) -> list[Record]:
    """The entities that match, including pending changes. Raises Forbidden, BadRequest."""
    access.require(dataset.context, repository, "read")
    with dataset.shown(), _savepoint():
        ids = select_ids(repository, ctx=dataset.context, filter=filter or None, orderby=orderby, limit=limit)
    loaded = dataset.load_many(repository, ids)
    return [loaded[id] for id in ids if id in loaded and not loaded[id].is_deleted]


def _savepoint() -> AbstractContextManager[Any]:
    """A savepoint on PostgreSQL, where a failed query aborts the transaction; on SQLite it would take the lock."""
    is_needed = connection.in_atomic_block and connection.vendor == "postgresql"
    return transaction.atomic() if is_needed else nullcontext()


def visible(dataset: Dataset, repository: Repository[Any], ids: Sequence[str]) -> list[Record]:
    """The existing and visible ones of the entities, in the given order, without duplicates.

    Raises Forbidden if the caller may not read the repository at all.
    """
    access.require(dataset.context, repository, "read")
    loaded = dataset.load_many(repository, list(dict.fromkeys(ids)))
    result = [
        record
        for record in loaded.values()
        if not record.is_deleted and issubclass(record.repository.model, repository.model)
    ]
    shown = _shown(dataset, repository, result)
    return [loaded[id] for id in dict.fromkeys(ids) if id in shown]


def _shown(dataset: UnitOfWork, repository: Repository[Any], records: Iterable[Record]) -> set[str]:
    """Guids of the records that row policies allow, and of new records, which are the caller's own."""
    records = list(records)
    if not Access(dataset.context.permissions).restricts(repository):
        return {record.id for record in records}
    shown = {record.id for record in records if record.state == "Added"}
    stored: dict[Repository[Any], list[str]] = {}
    for record in records:
        if record.state != "Added" and access.allowed(dataset.context, record.repository, "read"):
            stored.setdefault(record.repository, []).append(record.id)
    for concrete, ids in stored.items():
        shown.update(row[0] for row in select_rows(concrete, ("Id",), ctx=dataset.context, ids=ids))
    return shown


def without_hidden(dataset: UnitOfWork, repository: Repository[Any], ids: tuple[Any, ...]) -> tuple[Any, ...]:
    """Guids of references to the repository, with null for targets that are hidden from the caller."""
    if not Access(dataset.context.permissions).restricts(repository):
        return ids
    loaded = dataset.load_many(repository, list({id for id in ids if id is not None}))
    hidden = loaded.keys() - _shown(dataset, repository, loaded.values())
    return tuple([None if id in hidden else id for id in ids]) if hidden else ids


def follow(dataset: Dataset, records: Iterable[Record], name: str) -> list[Record]:
    """Targets of the named references that the caller may see."""
    by_target: dict[str, list[str]] = {}
    for record in dataset.previewed(list(records)):
        attribute = record.repository.attribute(name)
        if attribute is None or not attribute.is_reference:
            raise unknown_member(record.repository, name)
        id = record.values.get(attribute.name)
        if id is not None:
            by_target.setdefault(attribute.target, []).append(id)
    result: list[Record] = []
    for target, ids in by_target.items():
        result.extend(visible(dataset, repositories[target], ids))
    return result


def children(dataset: Dataset, parents: Sequence[Record], name: str) -> list[list[Record]]:
    """The owned collection of each of the parents."""
    for parent in parents:
        if parent.repository.collection(name) is None:
            raise unknown_member(parent.repository, name)
    dataset.load_children(parents, name)
    lists = [dataset.children(parent, name) for parent in parents]
    by_repository: dict[Repository[Any], list[Record]] = {}
    for parent in parents:
        child = parent.repository.collection(name)
        assert child is not None
        by_repository.setdefault(repositories[child.repository], [])
    for repository, members in by_repository.items():
        access.require(dataset.context, repository, "read")
        members.extend(record for found in lists for record in found if record.repository is repository)
    shown: set[str] = set()
    for repository, members in by_repository.items():
        shown |= _shown(dataset, repository, members)
    return [[record for record in found if record.id in shown] for found in lists]


def measures(dataset: Dataset, records: Sequence[Record], name: str) -> list[str | None]:
    """The currency or unit of an amount or quantity, for each record."""
    path: tuple[str, ...] = ()
    for record in records:
        attribute = record.repository.attribute(name)
        if attribute is None or not attribute.is_measured:
            raise unknown_member(record.repository, name)
        path = attribute.measure
    load_path(dataset, records, path)
    return [
        effective_measure(record, record.repository.attributes[_exact(record, name)])
        for record in dataset.previewed(records)
    ]


def load_path(dataset: Dataset, records: Iterable[Record], path: Iterable[str]) -> None:
    """Load the targets of a reference path into the dataset, one query per step."""
    current = list(records)
    for name in path:
        by_target: dict[str, dict[str, None]] = {}
        for record in current:
            id = record.values.get(name)
            if id is not None:
                by_target.setdefault(record.repository.attributes[name].target, {})[id] = None
        current = [
            record for target, ids in by_target.items() for record in dataset.load_many(target, list(ids)).values()
        ]


def display_texts(dataset: Dataset, records: Sequence[Record]) -> list[str]:
    """Display texts: one query for stored entities; from the dataset for those with pending changes."""
    if dataset.is_pending or len(records) == 1:
        return [dataset.display_text(record) for record in dataset.previewed(records)]
    by_repository: dict[Repository[Any], list[str]] = {}
    for record in records:
        by_repository.setdefault(record.repository, []).append(record.id)
    texts: dict[str, str] = {}
    for repository, ids in by_repository.items():
        rows = select_rows(repository, ("Id", "DisplayText"), ctx=dataset.context, ids=ids)
        texts.update((row[0], row[1]) for row in rows)
    return [texts[record.id] if record.id in texts else dataset.display_text(record) for record in records]


def unknown_member(repository: Repository[Any], name: str) -> errors.BadRequest:
    """The error for an unknown member of a repository's entities."""
    hint = near(name, [*repository.attributes, *repository.collections])
    return errors.BadRequest(errors.UNKNOWN_PROPERTY, name, repository.entity_type, hint, target=name)


def _exact(record: Record, name: str) -> str:
    attribute = record.repository.attribute(name)
    assert attribute is not None
    return attribute.name
