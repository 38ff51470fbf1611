"""Inserts records: dependency order, and statements for many rows of one repository."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import Any

from domain.dataset.records.record import Record
from domain.dataset.tables.row_storage import row_storage_of
from domain.model.registry import derived, repositories
from domain.model.repository import Repository


def insert_records(records: Sequence[Record], commit_time: datetime.datetime) -> None:
    """Insert in dependency order; adjacent records of one repository share a statement.

    Sets the change time of roots.
    """
    for record in records:
        if record.repository.is_root:
            record.values["AggregateLastUpdateTimeUtc"] = commit_time
    for repository, group in grouped(in_order_of_dependency(records)):
        row_storage_of(repository).insert([(record.values, record.custom) for record in group])


def grouped(records: Iterable[Record]) -> Iterable[tuple[Repository[Any], list[Record]]]:
    """Runs of records of one repository."""
    run: list[Record] = []
    for record in records:
        if run and run[0].repository is not record.repository:
            yield run[0].repository, run
            run = []
        run.append(record)
    if run:
        yield run[0].repository, run


def in_order_of_dependency(records: Sequence[Record]) -> list[Record]:
    """Entities after those that they refer to; levels of one repository stay together for bulk inserts."""
    by_id = {record.id: record for record in records}
    level: dict[str, int] = {}

    def level_of(record: Record, trail: frozenset[str]) -> int:
        known = level.get(record.id)
        if known is not None:
            return known
        highest = 0
        for target in targets_of(record):
            other = by_id.get(target)
            # A cycle (a document that is its own master) has no order; the deferred foreign keys allow it.
            if other is not None and target != record.id and target not in trail:
                highest = max(highest, level_of(other, trail | {record.id}) + 1)
        level[record.id] = highest
        return highest

    for record in records:
        level_of(record, frozenset())
    position = {repository.name: index for index, repository in enumerate(dict.fromkeys(r.repository for r in records))}
    return sorted(records, key=lambda record: (level[record.id], position[record.repository.name]))


def targets_of(record: Record) -> list[str]:
    """Guids in the record's references."""
    values = record.values
    return [target for name in record.repository.references if (target := values.get(name)) is not None]


def owners_of(record: Record) -> list[str]:
    """Guids of the record's owners."""
    values = record.values
    return [owner for name in _back_references(record.repository) if (owner := values.get(name)) is not None]


@derived
def _back_references(repository: Repository[Any]) -> tuple[str, ...]:
    """API names of the references to owners."""
    return tuple(
        name
        for name, reference in repository.references.items()
        for child in repositories[reference.target].collections.values()
        if child.back_reference == name and issubclass(repository.model, repositories[child.repository].model)
    )


@derived
def required_of(repository: Repository[Any]) -> tuple[str, ...]:
    """API names of the required attributes."""
    return tuple(attribute.name for attribute in repository.attributes.values() if attribute.required)
