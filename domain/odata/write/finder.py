"""Finds the entity for a body: by reference, key, external id, code or name (spec 02, 2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from domain.dataset.dataset import Dataset
from domain.dataset.lookups.lookup_key import LookupKey
from domain.dataset.records.record import Record
from domain.model.attributes import Child
from domain.model.repository import Repository
from domain.odata.message.references import annotation, check_target, parse_reference
from domain.odata.write.search_criteria import criterion_of
from foundation import errors


class Within(NamedTuple):
    """The owned collection of `parent` in which an entity is searched or created."""

    parent: Record
    child: Child


@dataclass(slots=True)
class Finder:
    """Finds entities of a repository, or those `within` a collection.

    references   Content-ID → path of entities of earlier parts of a batch
    """

    dataset: Dataset
    references: Mapping[str, str]
    repository: Repository[Any]
    within: Within | None

    def lookup_of(self, body: Mapping[str, Any]) -> LookupKey | None:
        """The first criterion of `@erpnet.findBy`, or of the body itself; None without one, or if there is @odata.id.

        Raises BadRequest for an invalid `@erpnet.findBy`.
        """
        if annotation(body, "id") is not None:
            return None
        criterion = criterion_of(self.repository, body)
        if criterion is None:
            return None
        parent = None if self.within is None else (self.within.child.back_reference, self.within.parent.id)
        return LookupKey(self.repository, criterion.values, parent, criterion.match)

    def find(self, body: Mapping[str, Any], lookup: LookupKey | None) -> list[Record]:
        """The visible entities that the body identifies, or that have its search properties."""
        reference = annotation(body, "id")
        if reference is not None:
            target, id = parse_reference(reference, "@odata.id", self.references)
            check_target(target, self.repository, "@odata.id", id)
            return self._visible([id])
        if lookup is None:
            return []
        if "Id" in lookup.values:
            return self._visible([lookup.values["Id"]])
        return self._search(lookup)

    def _search(self, lookup: LookupKey) -> list[Record]:
        """The matching entities, exact matches first; reads at most two stored ones, which show that it is ambiguous.

        Changed entities are compared in memory, without flushing: an import looks for thousands of entities while
        thousands are pending. Only a search by DisplayText flushes the pending changes and queries the database.
        """
        if lookup.match == "search":
            with self.dataset.flushed():
                ids = lookup.stored(self.dataset.context, limit=2)
            return self._visible(ids)
        self.dataset.load_pending(lookup.repository)
        changed = {
            record.id: record
            for record in self.dataset.changed()
            if issubclass(record.repository.model, lookup.repository.model)
        }
        matching = [record.id for record in changed.values() if lookup.fits(record)]
        if self.within is None or self.within.parent.state != "Added":
            stored = lookup.stored(self.dataset.context, limit=2 + len(changed))
            matching.extend(id for id in stored if id not in changed)
        found = self._visible(matching)
        # The sort is stable: among stored entities exact matches come first already.
        return sorted(found, key=lambda record: not lookup.is_exact(record)) if lookup.match == "contains" else found

    def _visible(self, ids: list[str]) -> list[Record]:
        result: list[Record] = []
        within = self.within
        for id in ids:
            try:
                record = self.dataset.open(self.repository, id)
            except errors.NotFound:
                continue
            if within is None or record.values.get(within.child.back_reference) == within.parent.id:
                result.append(record)
        return result
