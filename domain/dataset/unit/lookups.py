"""Lookups whose empty result makes a caller create an entity, protected against concurrent requests."""

from __future__ import annotations

from typing import Any

from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.lookups.lookup_key import LookupKey
from domain.dataset.records.record import Record
from domain.model.repository import Repository


class Lookups:
    """The lookups of one dataset.

    pending   identity of an entity created after an empty lookup → the lookup, which the commit repeats
    """

    def __init__(self, locks: AdvisoryLocks | None) -> None:
        self._locks = locks
        self.pending: dict[tuple[str, str], LookupKey] = {}

    def lock(self, lookup: LookupKey) -> None:
        """Lock the looked-up values until the database transaction ends.

        If that is before the commit, `remember` makes the commit repeat the lookup.
        """
        owner = lookup.repository.owner
        # A new part changes the version of its entity, which two concurrent requests cannot.
        owned = lookup.parent is not None and owner is not None and owner.name == lookup.parent[0]
        if self._locks is not None and not owned:
            self._locks.take(lookup.repository, lookup.locks())

    def lock_value(self, repository: Repository[Any], value: str) -> None:
        """Lock a value without a unique index, before a validation checks whether it is taken."""
        (self._locks or AdvisoryLocks()).take(repository, [value])

    def remember(self, record: Record, lookup: LookupKey) -> None:
        """Record that the entity was created after an empty lookup. The database itself refuses an existing key."""
        if self._locks is None and "Id" not in lookup.values and lookup.match != "search":
            self.pending[record.key] = lookup
