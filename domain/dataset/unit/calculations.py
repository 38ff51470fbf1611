"""Recalculates attributes that depend on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from domain.dataset.records.record import Record, UnitOfWork
from domain.model.behaviours import calculations_of
from foundation import errors


def calculate(dataset: UnitOfWork, records: Sequence[Record]) -> None:
    """Run the calculations whose triggers are dirty until none is; dependents of dependents included.

    Bounded: raises Refused(RULE_LOOP) naming the entity if values keep changing.
    """
    for _ in range(50):
        busy = list(_dirty(dataset, records))
        if not busy:
            return
        for record in busy:
            dataset.about_to_change(record)
            _run_calculations(record)
    raise errors.Refused(errors.RULE_LOOP, ", ".join(sorted(record.repository.name for record in busy)))


def _run_calculations(record: Record) -> None:
    """Run the calculations whose triggers are dirty, in order; each sees the changes of those before it.

    What only later calculations depend on does not stay dirty: these have run since.
    """
    dirty, record.dirty = record.dirty, set()
    triggers: set[str] = set()
    for calculation in calculations_of(record.repository):
        triggers.update(calculation.triggers)
        if not dirty.isdisjoint(calculation.triggers):
            calculation.compute(record)
            dirty |= record.dirty
            record.dirty &= triggers


def _dirty(dataset: UnitOfWork, records: Sequence[Record]) -> Iterator[Record]:
    seen: set[tuple[str, str]] = set()
    for record in (*records, *dataset.records.values()):
        if record.dirty and not record.is_deleted and record.key not in seen:
            seen.add(record.key)
            yield record
