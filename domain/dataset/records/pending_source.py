"""Interface of a Domain transaction's pending changes for the write engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from domain.dataset.records.record import Record, UnitOfWork
from domain.model.attributes import Attribute
from domain.model.repository import Repository


class PendingSource(Protocol):
    """Pending changes of earlier requests (domain.dataset.transactions). All methods add the loaded records to the
    dataset.
    """

    def has(self, record: Record) -> bool:
        """Whether the record is pending, and was not loaded from the database by this request."""
        ...

    def load(self, identity: str, ids: Sequence[str]) -> list[Record]:
        """Pending records among the guids."""
        ...

    def load_new(self, ids: Collection[str]) -> None:
        """Pending new records among the guids, of any repository."""
        ...

    def load_children(self, repository: Repository[Any], back_reference: Attribute, parents: Sequence[str]) -> None:
        """Pending records that point at one of the parents."""
        ...

    def load_repositories(self, names: Sequence[str]) -> None:
        """Every pending record of the repositories."""
        ...

    def load_aggregate(self, root: Record, names: Sequence[str]) -> None:
        """Every pending record that is or was within the root's aggregate; `names`: the repositories of its parts."""
        ...

    def load_all(self) -> None:
        """Every pending record."""
        ...


class PendingUnit(UnitOfWork, Protocol):
    """A unit of work that may have pending changes of earlier requests.

    pending_source   None outside of a Domain transaction
    rows_written     a commit has written the pending changes, and not yet announced them
    """

    pending_source: PendingSource | None
    rows_written: bool
