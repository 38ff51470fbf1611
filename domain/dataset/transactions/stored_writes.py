"""Deferred writes (`Dataset.defer_write`) that are stored between the requests of a Domain transaction.

An event of one request may defer a write to a commit in another request, in another process. Such a write is an object
that can be serialized to JSON; a plain function lives as long as its request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, Self, runtime_checkable

from domain.dataset.commit.deferred_writes import BulkWrite
from domain.dataset.dataset import Dataset
from domain.dataset.tables.models import DomainTransaction, PendingWrite
from foundation.catalogue import Catalogue

#: Functions that execute stored writes in the dataset that commits them, given their payloads. The names are stored.
write_handlers: Catalogue[Callable[[Dataset, Sequence[Any]], None]] = Catalogue("write handler")


@runtime_checkable
class StorableWrite(BulkWrite, Protocol):
    """A deferred write that is stored until a later request commits it."""

    def serialize(self) -> tuple[str, Any]:
        """(name in `write_handlers`, payload as JSON)."""
        ...


@dataclass(frozen=True, slots=True)
class StoredWrite:
    """A stored write of an earlier request."""

    handler: str
    payload: Any
    dataset: Dataset

    def __call__(self) -> None:
        self.write_all([self])

    @classmethod
    def write_all(cls, writes: Sequence[Self]) -> None:
        """Execute the writes; adjacent ones with the same handler together."""
        for handler, group in groupby(writes, attrgetter("handler")):
            known = list(group)
            write_handlers[handler](known[0].dataset, [write.payload for write in known])

    def serialize(self) -> tuple[str, Any]:
        """The name and payload, unchanged."""
        return self.handler, self.payload


def writes_store(dataset: Dataset, row: DomainTransaction) -> None:
    """Store the deferred writes of this request: for each key, the latest."""
    for key, write in dataset.deferred.writes.items():
        if isinstance(write, StorableWrite) and not isinstance(write, StoredWrite):
            handler, payload = write.serialize()
            PendingWrite.objects.update_or_create(
                transaction=row, key=repr(key), defaults={"handler": handler, "payload": payload}
            )


def writes_load(dataset: Dataset, row: DomainTransaction) -> None:
    """Put the stored writes of earlier requests before those of this one, which replace equal keys."""
    # After a failed commit those that it has loaded are there, and in the database.
    own = {key: write for key, write in dataset.deferred.writes.items() if not isinstance(write, StoredWrite)}
    known = {repr(key) for key in own}
    earlier: dict[object, Callable[[], None]] = {
        kept.key: StoredWrite(kept.handler, kept.payload, dataset)
        for kept in PendingWrite.objects.filter(transaction=row).order_by("pk")
        if kept.key not in known
    }
    dataset.deferred.replace_writes({**earlier, **own})
