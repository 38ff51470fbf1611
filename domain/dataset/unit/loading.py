"""Loads the entities of a dataset from its pending changes and from the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from domain.dataset.records.pending_source import PendingUnit
from domain.dataset.records.record import Record
from domain.dataset.tables import reference_rows
from domain.dataset.tables.row_storage import Row, row_storage_of
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.guids import is_guid


class Loader:
    """Fills the identity map of a dataset.

    missing   identities of entities that do not exist
    """

    def __init__(self, dataset: PendingUnit) -> None:
        self._dataset = dataset
        self.missing: set[tuple[str, str]] = set()

    def load(self, repository: Repository[Any], id: str) -> Record | None:
        """The entity; None if there is none (deleted in the dataset counts as none)."""
        result = self._dataset.records.get((repository.identity_name, id))
        if result is None:
            result = self.load_many(repository, [id]).get(id)
        return None if result is None or result.state == "Deleted" else result

    def load_found(
        self, repository: Repository[Any], values: Mapping[str, Any], limit: int | None
    ) -> dict[str, Record]:
        """Guid → record of the entities that are stored with these values, in order of creation."""
        storage = row_storage_of(repository)
        if repository.is_polymorphic and repository.subtypes:
            return self.load_many(repository, storage.find_ids(values, limit))
        find = partial(storage.find, values, limit)
        key = "find", tuple(values.items()), limit
        rows = reference_rows.read(repository, key, find, fresh=self._dataset.rows_written)
        return self.load_rows(repository, rows)

    def load_rows(self, repository: Repository[Any], rows: Mapping[str, Row]) -> dict[str, Record]:
        """As `load_many`, for rows of this repository itself that have been read already."""
        return self.load_many(repository, list(rows), rows)

    def load_many(
        self, repository: Repository[Any], ids: Sequence[str], rows: Mapping[str, Row] | None = None
    ) -> dict[str, Record]:
        """Guid → record of existing entities, with one query for those that are not in the dataset yet, unless `rows`
        has them.
        """
        identity = repository.identity_name
        result: dict[str, Record] = {}
        absent: list[str] = []
        for id in ids:
            key = (identity, id)
            record = self._dataset.records.get(key)
            if record is not None:
                result[id] = record
            elif key not in self.missing:
                # A text that is no guid matches nothing; PostgreSQL would refuse the query.
                if is_guid(id):
                    absent.append(id)
                else:
                    self.missing.add(key)
        if absent and self._dataset.pending_source is not None:
            for record in self._dataset.pending_source.load(identity, absent):
                result[record.id] = record
            absent = [id for id in absent if id not in result]
        if absent and rows is not None:
            self._keep(repository, identity, {id: rows[id] for id in absent}, result)
        elif absent:
            self._load_stored(repository, identity, absent, result)
        return {id: result[id] for id in ids if id in result}

    def is_known(self, repository: Repository[Any], id: str) -> bool:
        """Whether an entity with this key is loaded or pending; the database refuses keys that are only stored."""
        if (repository.identity_name, id) in self._dataset.records:
            return True
        return bool(
            self._dataset.pending_source and list(self._dataset.pending_source.load(repository.identity_name, [id]))
        )

    def _load_stored(
        self, repository: Repository[Any], identity: str, ids: Sequence[str], found: dict[str, Record]
    ) -> None:
        by_concrete: dict[str, list[str]] = {}
        if repository.is_polymorphic and repository.subtypes:
            for id, name in row_storage_of(repository).concrete_names(ids).items():
                by_concrete.setdefault(name, []).append(id)
        else:
            by_concrete[repository.name] = list(ids)
        for name, group in by_concrete.items():
            concrete = repositories[name]
            load = partial(row_storage_of(concrete).load, group)
            rows = reference_rows.read(concrete, ("load", *group), load, fresh=self._dataset.rows_written)
            self._keep(concrete, identity, rows, found)
        self.missing.update((identity, id) for id in ids if id not in found)

    def _keep(
        self, concrete: Repository[Any], identity: str, rows: Mapping[str, Row], found: dict[str, Record]
    ) -> None:
        for id, row in rows.items():
            record = Record(self._dataset, concrete, id, "Unchanged", row.values)
            record.version = row.version
            record.custom = row.custom
            self._dataset.records[(identity, id)] = record
            found[id] = record
