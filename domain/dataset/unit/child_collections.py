"""The owned collections of a dataset's entities."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

from domain.dataset.records.pending_source import PendingUnit
from domain.dataset.records.record import Record
from domain.dataset.tables import reference_rows
from domain.dataset.tables.row_storage import Row, row_storage_of
from domain.model.attributes import Attribute
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors


class ChildCollections:
    """The members of the loaded or changed owned collections."""

    def __init__(self, dataset: PendingUnit) -> None:
        self._dataset = dataset
        #: (parent identity, collection name) → identities of the children, in order
        self._members: dict[tuple[tuple[str, str], str], list[tuple[str, str]]] = {}

    def of(self, parent: Record, collection: str) -> list[Record]:
        """The entities of an owned collection, in order of creation; deleted ones left out."""
        child = parent.repository.collection(collection)
        if child is None:
            raise errors.BadRequest(
                errors.UNKNOWN_PROPERTY, collection, parent.repository.entity_type, target=collection
            )
        key = (parent.key, child.name)
        repository = repositories[child.repository]
        if key not in self._members:
            back = repository.references[child.back_reference]
            rows = {} if parent.state == "Added" else self._stored(repository, back, parent)
            if self._dataset.pending_source is not None:
                self._dataset.pending_source.load_children(repository, back, [parent.id])
            result = [record.key for record in self._dataset.load_rows(repository, rows).values()]
            known = set(result)
            others = [
                record
                for record in self._dataset.records.values()
                if record.repository is repository
                and record.values.get(back.name) == parent.id
                and record.key not in known
            ]
            result.extend(record.key for record in self.earlier_first(others))
            self._members[key] = result
        # A member whose deletion has been committed is no longer in the dataset.
        present = self._dataset.records
        records = [present[identity] for identity in self._members[key] if identity in present]
        back_name = child.back_reference
        return [r for r in records if r.state != "Deleted" and r.values.get(back_name) == parent.id]

    def _stored(self, repository: Repository[Any], back: Attribute, parent: Record) -> dict[str, Row]:
        """The stored entities by guid that refer to the parent."""
        children = partial(row_storage_of(repository).children, back, [parent.id])
        key = "children", back.name, parent.id
        return reference_rows.read(repository, key, children, fresh=self._dataset.rows_written)

    def load(self, parents: Sequence[Record], collection: str) -> None:
        """Load an owned collection of many parents, with one query."""
        groups: dict[tuple[str, str, str], list[Record]] = {}
        for parent in parents:
            child = parent.repository.collection(collection)
            if child is not None and (parent.key, child.name) not in self._members:
                groups.setdefault((child.name, child.repository, child.back_reference), []).append(parent)
        for (name, repository_name, back_name), group in groups.items():
            repository = repositories[repository_name]
            back = repository.references[back_name]
            if self._dataset.pending_source is not None:
                ids = [parent.id for parent in group]
                self._dataset.pending_source.load_children(repository, back, ids)
            stored = [parent.id for parent in group if parent.state != "Added"]
            rows = row_storage_of(repository).children(back, stored)
            members: dict[str, dict[tuple[str, str], None]] = {parent.id: {} for parent in group}
            for id, record in self._dataset.load_rows(repository, rows).items():
                members[rows[id].values[back.name]][record.key] = None
            for record in self._dataset.records.values():
                known = members.get(record.values.get(back_name) or "") if record.repository is repository else None
                if known is not None:
                    known[record.key] = None
            for parent in group:
                self._members[(parent.key, name)] = list(members[parent.id])

    def attach(self, record: Record) -> None:
        """Add a record to the loaded collections of its parents."""
        for name, attribute in record.repository.references.items():
            if record.values.get(name) is not None:
                self.attach_by(record, attribute)

    def attach_by(self, record: Record, reference: Attribute) -> None:
        """As `attach`, for one of its references."""
        target = record.values.get(reference.name)
        if target is None:
            return
        parent = self._dataset.records.get((repositories[reference.target].identity_name, target))
        if parent is None:
            return
        for name in _collections_of(parent.repository, record.repository, reference.name):
            members = self._members.get((parent.key, name))
            if members is None and self._has_all(parent):
                members = self._members[(parent.key, name)] = []
            if members is not None and record.key not in members:
                members.append(record.key)

    def _has_all(self, parent: Record) -> bool:
        """Whether the dataset has all children: the parent is new, and no earlier request has created some of them."""
        source = self._dataset.pending_source
        return parent.state == "Added" and (source is None or not source.has(parent))

    def earlier_first(self, records: Sequence[Record]) -> Sequence[Record]:
        """Records of the dataset in order of creation: those of earlier requests may have been loaded later."""
        source = self._dataset.pending_source
        return records if source is None else sorted(records, key=lambda record: not source.has(record))

    def mark_parents(self, record: Record) -> None:
        """Mark the collection of the record's parents as changed, for calculations that depend on it."""
        self._mark(record.parent, record)
        self._mark(record.former_parent, record)

    def mark_parent(self, record: Record, id: str | None) -> None:
        """As `mark_parents`, for one present or former parent."""
        owner = record.repository.owner
        if owner is not None and id is not None:
            self._mark(self._dataset.load(owner.target, id), record)

    @staticmethod
    def _mark(parent: Record | None, record: Record) -> None:
        if parent is None or parent.is_deleted:
            return
        for child in parent.repository.collections.values():
            if child.repository == record.repository.name:
                parent.dataset.about_to_change(parent)
                parent.dirty.add(child.name)
                parent.mutations += 1

    def forget(self, key: tuple[str, str]) -> None:
        """Remove a new entity that was deleted again."""
        for members in self._members.values():
            if key in members:
                members.remove(key)

    def follow(self, other: ChildCollections) -> None:
        """Take over the collections of new entities from a dataset of which this one has copies."""
        # Those of stored entities have members that are not copied.
        present = self._dataset.records
        for (parent, name), members in other._members.items():
            if parent in present and present[parent].state == "Added":
                self._members[parent, name] = list(members)

    def clear(self) -> None:
        self._members.clear()


@cache
def _collections_of(parent: Repository[Any], child: Repository[Any], back_reference: str) -> tuple[str, ...]:
    """Names of the parent's collections whose children have this back reference."""
    return tuple(
        known.name
        for known in parent.collections.values()
        if known.repository == child.name and known.back_reference == back_reference
    )
