"""What events leave for the commit (`Dataset.defer_write`), kept between the requests of a Domain transaction.

An event of one request may leave a write for a commit that comes with another request, in another process. Such a write
is an object that can also be frozen to JSON; a plain function lives as long as its request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, Self, runtime_checkable

from django.utils.module_loading import import_string

from domain.dataset.commit.deferred_writes import BulkWrite
from domain.dataset.dataset import Dataset
from domain.dataset.tables.models import DomainTransaction, PendingWrite


@runtime_checkable
class KeepableWrite(BulkWrite, Protocol):
    """A deferred write that outlives its request."""

    def freeze(self) -> tuple[str, Any]:
        """(dotted name of a function that takes a list of payloads and writes them, payload as JSON)."""
        ...


@dataclass(frozen=True, slots=True)
class ThawedWrite:
    """A write of an earlier request."""

    handler: str
    payload: Any

    def __call__(self) -> None:
        """Write."""
        self.write_all([self])

    @classmethod
    def write_all(cls, writes: Sequence[Self]) -> None:
        """Write; neighbours with one handler together."""
        for handler, group in groupby(writes, attrgetter("handler")):
            import_string(handler)([write.payload for write in group])

    def freeze(self) -> tuple[str, Any]:
        """As it was."""
        return self.handler, self.payload


def writes_store(dataset: Dataset, row: DomainTransaction) -> None:
    """Keep what this request's events left; one write for each key, the latest."""
    for key, write in dataset.deferred.writes.items():
        if isinstance(write, KeepableWrite) and not isinstance(write, ThawedWrite):
            handler, payload = write.freeze()
            PendingWrite.objects.update_or_create(
                transaction=row, key=repr(key), defaults={"handler": handler, "payload": payload}
            )


def writes_load(dataset: Dataset, row: DomainTransaction) -> None:
    """Leave to the commit what earlier requests kept, before what this one left; its own writes win over equal keys."""
    own = dict(dataset.deferred.writes)
    known = {repr(key) for key in own}
    earlier: dict[object, Callable[[], None]] = {
        kept.key: ThawedWrite(kept.handler, kept.payload)
        for kept in PendingWrite.objects.filter(transaction=row).order_by("pk")
        if kept.key not in known
    }
    dataset.deferred.replace_writes({**earlier, **own})
