"""Computes the values that a commit would fill into pending entities, for reads in a Domain transaction (spec 03, 3.2).

The effects of edits, late defaults and calculations run on copies of the pending entities. Autoflush writes the copies,
so a read changes no entity of the dataset, and the commit starts from the callers' values. Events, rules, validations
and deferred writes run at the commit only. Numbers are taken in autoflush's savepoint, whose rollback returns them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from domain.dataset.checks.edit_rules import follow_edits
from domain.dataset.checks.limits import check_limits
from domain.dataset.commit.completion import (
    is_pending,
    mark_parents,
    run_late_defaults,
    with_new_targets,
    with_parts,
    within,
)
from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.pending_source import PendingSource
from domain.dataset.records.record import Record
from domain.dataset.tables.row_storage import Row
from domain.dataset.unit import autoflush
from domain.dataset.unit.attribute_changes import AttributeChanges
from domain.dataset.unit.change_tracker import ChangeTracker
from domain.dataset.unit.events import Events
from domain.dataset.unit.loading import Loader
from domain.model.attributes import Attribute
from domain.model.behaviours import calculations_of
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors


class CommitPreview(ChangeTracker):
    """Copies of a dataset's pending entities with the values that a commit would fill in.

    start   repository and guid of the only entity of its kind that the read shows
    """

    def __init__(self, original: ChangeTracker) -> None:
        super().__init__(original.context, model=original.model)
        self.start: tuple[Repository[Any], str] | None = None
        self._original = original
        self._followed = original.changes
        self._undone = original.undo.count
        #: Repositories that behaviours have queried.
        self._consulted: set[str] = set()
        #: Whether numbers were taken: after the rollback other requests may take the same ones.
        self._is_numbered = False
        self._events = _NoEvents(self)
        self._changes = AttributeChanges(self, self._events)
        self._loader = _BorrowingLoader(self)
        self._seen = 0
        #: Identity → mutations of the entity that was copied.
        self._mutations: dict[tuple[str, str], int] = {}
        #: Identities of pending entities that no read has touched yet.
        self._untouched: set[tuple[str, str]] = set()
        #: Identities of the entities that have been filled in; `_filled_last`: the entities of the last call.
        self._filled: set[tuple[str, str]] = set()
        self._filled_last: list[Record] = []
        self.pending_source = None if original.pending_source is None else _BorrowedPending(self, original)
        self.measure_ids = original.measure_ids
        self.set_commit_time()
        self.take()
        if self.pending_source is None:
            # With a pending source, members may be pending that the dataset has not loaded.
            self.child_collections.follow(original.child_collections)

    def commit(self, *, savepoint: bool = True) -> CommitResult:
        """Raise: copies are never committed."""
        raise NotImplementedError

    def next_number(self, sequence: str, *, width: int = 6, start: int = 1) -> str:
        self._is_numbered = True
        return super().next_number(sequence, width=width, start=start)

    def load_pending(self, repository: str | Repository[Any]) -> None:
        self._consult(repository)
        super().load_pending(repository)

    def find_all(
        self,
        repository: str | Repository[Any],
        *,
        order_by: Sequence[str] = (),
        limit: int | None = None,
        **conditions: Any,
    ) -> list[Record]:
        self._consult(repository)
        return super().find_all(repository, order_by=order_by, limit=limit, **conditions)

    def children(self, parent: Record, collection: str) -> list[Record]:
        if (child := parent.repository.collection(collection)) is not None:
            self._consult(child.repository)
        return super().children(parent, collection)

    def _consult(self, repository: str | Repository[Any]) -> None:
        known = repositories[repository] if isinstance(repository, str) else repository
        self._consulted.add(known.identity_name)

    # --- copies ---------------------------------------------------------------------------------------------------

    def follow(self, *, are_rows: bool) -> bool:
        """Copy changes of the dataset since the last call; False if all copies must be made anew.

        New entities affect no existing copies, unless behaviours have queried their repository.

        are_rows   the copies are written as rows, so their numbers must be free
        """
        if (self._is_numbered and are_rows) or self._undone != self._original.undo.count:
            return False
        if self._followed == self._original.changes:
            return True
        known = self._original.records
        if any(key not in known or known[key].mutations != count for key, count in self._mutations.items()):
            return False
        further = [record for key, record in known.items() if key not in self._mutations and is_pending(record)]
        if any(record.key in self.records or record.key[0] in self._consulted for record in further):
            return False
        for record in further:
            self.borrow(record.key)
        self._seen = len(known)
        self._followed = self._original.changes
        return True

    def take(self) -> None:
        """Copy the pending entities that the dataset has loaded since the last call."""
        known = self._original.records
        if len(known) == self._seen:
            return
        fresh = [record for record in islice(known.values(), self._seen, None) if is_pending(record)]
        self._seen = len(known)
        for record in fresh:
            self.borrow(record.key)

    def borrow(self, key: tuple[str, str]) -> None:
        """Copy one entity of the dataset, pending or not, unless it is copied already."""
        record = self._original.records.get(key)
        if record is None or key in self.records:
            return
        copy = Record(self, record.repository, record.id, record.state, dict(record.values))
        copy.original_values = dict(record.original_values)
        copy.custom, copy.custom_changed, copy.original_custom = (
            record.custom, record.custom_changed, record.original_custom,
        )  # fmt: skip
        copy.version, copy.mutations = record.version, record.mutations
        copy.by_client, copy.client_caused = record.by_client, record.client_caused
        # With the record, because a pending row brings them, too.
        if (stated := self._original.stated_measures.get(key)) is not None:
            self.stated_measures[key] = dict(stated)
        if (given := self._original.behaviour_values.get(key)) is not None:
            self.behaviour_values[key] = dict(given)
        if (known := self._original.authorities.get(key)) is not None:
            self.authorities[key] = set(known)
        self.records[key] = copy
        self._mutations[key] = record.mutations
        if is_pending(record):
            self._untouched.add(key)

    # --- filling in -----------------------------------------------------------------------------------------------

    def touch(self, tables: Collection[str], names: Sequence[str]) -> list[Record]:
        """The copies of pending entities in these tables, of these repositories, with their parts and what they refer
        to, that have not been filled in yet.
        """
        root = self._root(tables)
        wanted = with_parts(tuple(names) if root is None else (root.repository.name,), repositories.generation)
        if self.pending_source is not None:
            self.pending_source.load_repositories(wanted)
        self.take()
        touched = [record for key in self._untouched if (record := self.records[key]).repository.name in wanted]
        if root is not None:
            touched = within(root, touched)
        result = with_new_targets(
            self, touched, lambda record: record.key in self._untouched, also_of=self._filled_last
        )
        return [result[key] for key in self._original.records if key in result]

    def of(self, wanted: Sequence[Record], records: Sequence[Record]) -> list[Record]:
        """The records of the dataset, with copies in place of the wanted ones that a commit would change."""
        owners = {record.id if (owner := record.repository.owner) is None else record.values.get(owner.name)
                  for record in wanted}  # fmt: skip
        self.start = (wanted[0].repository, wanted[0].id) if len(owners) == 1 else None
        names = list(dict.fromkeys(record.repository.name for record in wanted))
        with autoflush.rolled_back() as begin:
            while touched := self.touch((), names):
                begin()
                self.fill_in(touched)
        copied = {record.key for record in wanted} & self.records.keys()
        return [self.records[record.key] if record.key in copied else record for record in records]

    def _root(self, tables: Collection[str]) -> Record | None:
        """The root of the start, if the tables are those of its aggregate."""
        record = self.load(*self.start) if self.start is not None else None
        if record is None:
            return None
        root = record.root
        parts = with_parts((root.repository.name,), repositories.generation)
        own = {table for name in parts for table, _ in repositories[name].tables}
        return root if own.issuperset(tables) else None

    def fill_in(self, touched: Sequence[Record]) -> None:
        """Fill in the values that a commit would set; values that it would refuse stay missing."""
        self._untouched -= {record.key for record in touched}
        for record in touched:
            record.dirty |= self._original.records[record.key].dirty
        mark_parents(self, touched)
        self._load_collections(touched)
        for record in touched:
            with suppress(errors.PlatformError):
                follow_edits([record])
        run_late_defaults(self, self._being_filled, _run)
        self._filled_last = self._being_filled()
        self._filled.update(record.key for record in self._filled_last)
        for record in self._filled_last:
            self._keep_within_limits(record)

    def _load_collections(self, parents: Sequence[Record]) -> None:
        """Load the collections that calculations sum, for all headers at once."""
        by_repository: dict[Repository[Any], list[Record]] = {}
        for parent in parents:
            if not parent.is_deleted and parent.repository.collections:
                by_repository.setdefault(parent.repository, []).append(parent)
        for repository, group in by_repository.items():
            triggers = {name for calculation in calculations_of(repository) for name in calculation.triggers}
            for name in triggers & repository.collections.keys():
                self.load_children(group, name)

    def _being_filled(self) -> list[Record]:
        done = self._untouched | self._filled
        return [record for record in self.changed() if record.key not in done]

    def calculate(self, records: Sequence[Record]) -> None:
        """As ChangeTracker.calculate; an entity whose calculation is refused keeps its values missing."""
        while True:
            try:
                super().calculate(records)
            except errors.PlatformError as error:
                # The refused entity counts as calculated, so the next run continues with the others.
                if error.code is errors.RULE_LOOP:
                    return
            else:
                return

    def _keep_within_limits(self, record: Record) -> None:
        """Withdraw values that the columns cannot hold."""
        if record.is_deleted:
            return
        try:
            check_limits(record)
        except errors.PlatformError:
            del self.records[record.key]
            self.borrow(record.key)
            self._untouched.discard(record.key)


class _NoEvents(Events):
    """Raises no events: rules run once, at the commit."""

    def raise_event(
        self, record: Record, event: str, parameter: str = "", attributes: Mapping[str, Any] | None = None
    ) -> None:
        pass

    def watches(self, record: Record, names: tuple[str, ...], parameter: str) -> bool:
        return False


class _BorrowingLoader(Loader):
    """Copies entities that the dataset has loaded already, instead of reading them again."""

    def __init__(self, preview: CommitPreview) -> None:
        super().__init__(preview)
        self._preview = preview

    def load_many(
        self, repository: Repository[Any], ids: Sequence[str], rows: Mapping[str, Row] | None = None
    ) -> dict[str, Record]:
        for id in ids:
            self._preview.borrow((repository.identity_name, id))
        return super().load_many(repository, ids, rows)


class _BorrowedPending(PendingSource):
    """Loads pending changes of earlier requests into the dataset, and copies them."""

    def __init__(self, preview: CommitPreview, original: ChangeTracker) -> None:
        assert original.pending_source is not None
        self._preview = preview
        self._source = original.pending_source

    def has(self, record: Record) -> bool:
        return self._source.has(record)

    def load(self, identity: str, ids: Sequence[str]) -> list[Record]:
        loaded = self._source.load(identity, ids)
        self._preview.take()
        return [self._preview.records[record.key] for record in loaded]

    def load_new(self, ids: Collection[str]) -> None:
        self._source.load_new(ids)
        self._preview.take()

    def load_children(self, repository: Repository[Any], back_reference: Attribute, parents: Sequence[str]) -> None:
        self._source.load_children(repository, back_reference, parents)
        self._preview.take()

    def load_repositories(self, names: Sequence[str]) -> None:
        self._source.load_repositories(names)
        self._preview.take()

    def load_aggregate(self, root: Record, names: Sequence[str]) -> None:
        self._source.load_aggregate(root, names)
        self._preview.take()

    def load_all(self) -> None:
        self._source.load_all()
        self._preview.take()


def _run(behaviours: Iterable[Callable[[Record], object]], record: Record) -> None:
    for behaviour in behaviours:
        with suppress(errors.PlatformError):
            behaviour(record)


__all__ = ["CommitPreview"]
