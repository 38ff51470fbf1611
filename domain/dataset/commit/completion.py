"""Fills in pending entities: the late defaults of the commit, and the completion of one aggregate before it.

An operation and its rules read an entity before the commit has filled it in. So its aggregate is completed first
(spec 05, 5.2): the effects of edits, late defaults and calculations run on the entities themselves. Late defaults that
wait for the commit even in the frontend model, such as numbers, wait here, too: a transaction that is never committed
would lose the numbers. The commit then finds the values, and recalculates only after later changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

from domain.dataset.checks.edit_rules import follow_edits
from domain.dataset.commit.conflicts import depth
from domain.dataset.commit.validation import call_each
from domain.dataset.records.record import Record
from domain.dataset.records.row_writer import targets_of
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.model.attributes import AtCommit, FromSequence, LateDefault
from domain.model.behaviours import late_defaults_of
from domain.model.registry import repositories


def complete(dataset: ChangeTracker, record: Record) -> None:
    """Fill in the pending entities of the record's aggregate, and the new ones that these refer to, once.

    Raises the errors of late defaults, calculations and effects of edits, as the commit would.
    """
    if not dataset.is_pending:
        return
    root = record.root
    names = with_parts((root.repository.name,), repositories.generation)
    if dataset.pending_source is not None:
        dataset.pending_source.load_aggregate(root, names)

    def concerned() -> Sequence[Record]:
        pending = [each for each in dataset.records.values() if each.repository.name in names and is_pending(each)]
        found = with_new_targets(dataset, within(root, pending), is_pending)
        return dataset.child_collections.earlier_first([each for key, each in dataset.records.items() if key in found])

    # The marked parents are among the concerned records.
    mark_parents(dataset, concerned())
    touched = concerned()
    with _other_changes_suspended(dataset, touched):
        follow_edits(touched)
        run_late_defaults(
            dataset, lambda: [each for each in concerned() if each.state != "Unchanged"], call_each, at_commit=False
        )


def calculate_only(dataset: ChangeTracker, records: Sequence[Record]) -> None:
    """Calculate these records and what follows from them."""
    with _other_changes_suspended(dataset, records):
        dataset.calculate(records)


@contextmanager
def _other_changes_suspended(dataset: ChangeTracker, concerned: Sequence[Record]) -> Iterator[None]:
    """Within the block, changes of other entities trigger no calculations."""
    keys = {record.key for record in concerned}
    others = [(record, record.dirty) for key, record in dataset.records.items() if record.dirty and key not in keys]
    for record, _ in others:
        record.dirty = set()
    before = dataset.undo.set_aside
    dataset.undo.set_aside = {**before, **{record.key: dirty for record, dirty in others}}
    try:
        yield
    finally:
        dataset.undo.set_aside = before
        for record, dirty in others:
            record.dirty |= dirty


# --- late defaults ------------------------------------------------------------------------------------------------


def run_late_defaults(
    dataset: ChangeTracker,
    records: Callable[[], Sequence[Record]],
    run: Callable[[Iterable[LateDefault], Record], None],
    *,
    at_commit: bool = True,
) -> None:
    """Fill missing values and those that depend on others; last of all numbers, whose sequences stay locked.

    records     returns the changed records concerned; called again when late defaults may have created further ones
    run         runs late defaults of one record, in order
    at_commit   False: skip late defaults that wait for the commit, such as numbers
    """
    for are_numbers in (False, True) if at_commit else (False,):
        _run_late_defaults(records, run, are_numbers=are_numbers, at_commit=at_commit)
        dataset.calculate(records())


def _run_late_defaults(
    records: Callable[[], Sequence[Record]],
    run: Callable[[Iterable[LateDefault], Record], None],
    *,
    are_numbers: bool,
    at_commit: bool,
) -> None:
    """Run the late defaults of parents before those of children."""
    done: set[tuple[str, str]] = set()
    while True:
        waiting = [record for record in records() if record.key not in done and not record.is_deleted]
        if not waiting:
            return
        for record in sorted(waiting, key=depth):
            done.add(record.key)
            if are_numbers and not record.is_new:
                continue
            late_defaults = [
                each
                for each in late_defaults_of(record.repository)
                if isinstance(each, FromSequence) is are_numbers and (at_commit or not isinstance(each, AtCommit))
            ]
            run(late_defaults, record)


# --- which entities -----------------------------------------------------------------------------------------------


def is_pending(record: Record) -> bool:
    """Whether a commit would write or recalculate the record."""
    return record.state != "Unchanged" or bool(record.dirty)


def mark_parents(dataset: ChangeTracker, records: Sequence[Record]) -> None:
    """Mark the parents of deleted and moved parts for calculation: earlier requests have done that only in the frontend
    model.
    """
    if dataset.model == "frontend":
        return
    for record in records:
        if record.is_deleted or record.former_parent is not None:
            dataset.child_collections.mark_parents(record)


def with_new_targets(
    dataset: ChangeTracker,
    records: Sequence[Record],
    is_wanted: Callable[[Record], bool],
    *,
    also_of: Sequence[Record] = (),
) -> Mapping[tuple[str, str], Record]:
    """The records, and the wanted new entities to which they or `also_of` refer, directly or indirectly."""
    result = {record.key: record for record in records}
    following = [*records, *also_of]
    while targets := {target for record in following for target in targets_of(record)}:
        if dataset.pending_source is not None:
            dataset.pending_source.load_new(targets)
        following = [each for each in dataset.new_records(targets) if each.key not in result and is_wanted(each)]
        result.update((record.key, record) for record in following)
    return result


def within(root: Record, records: Collection[Record]) -> list[Record]:
    """The records that are or were within the root's aggregate."""
    by_owner: dict[str | None, list[Record]] = {}
    for record in records:
        if (owner := record.repository.owner) is not None:
            for id in {record.values.get(owner.name), record.original_values.get(owner.name)}:
                by_owner.setdefault(id, []).append(record)
    result = {record.key: record for record in records if record.key == root.key}
    waiting = [root.id]
    while waiting:
        parts = by_owner.pop(waiting.pop(), ())
        result.update((part.key, part) for part in parts)
        waiting += [part.id for part in parts]
    return list(result.values())


@lru_cache(maxsize=4096)
def with_parts(names: tuple[str, ...], generation: int) -> tuple[str, ...]:
    """The repositories and, at any depth, those of the parts of their entities, since headers sum their lines."""
    result = dict.fromkeys(names)
    while True:
        parts = [
            repository.name
            for repository in repositories
            if repository.name not in result
            and repository.owner is not None
            and any(_is_base(repository.owner.target, name) for name in result)
        ]
        if not parts:
            return tuple(result)
        result.update(dict.fromkeys(parts))


def _is_base(base: str, name: str) -> bool:
    return issubclass(repositories[name].model, repositories[base].model)
