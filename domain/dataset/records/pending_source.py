"""Where a Domain transaction's pending rows come from, as its dataset sees it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.repository import Repository

if TYPE_CHECKING:
    from domain.dataset.unit.dataset import Dataset


class PendingSource:
    """Where a Domain transaction's pending rows come from; see domain.dataset.transactions.domain_transactions. All methods adopt."""

    def has(self, record: Record) -> bool:
        """Whether the record was adopted, and not loaded from the database by this request."""
        raise NotImplementedError

    def load(self, dataset: Dataset, identity: str, ids: Sequence[str]) -> list[Record]:
        """Pending records among the guids."""
        raise NotImplementedError

    def load_new(self, dataset: Dataset, ids: Collection[str]) -> None:
        """Pending new records among the guids, whatever they are."""
        raise NotImplementedError

    def load_children(
        self, dataset: Dataset, repository: Repository[Any], back_reference: Attribute, parents: Sequence[str]
    ) -> None:
        """Pending records that point at one of the parents."""
        raise NotImplementedError

    def load_repositories(self, dataset: Dataset, names: Sequence[str]) -> None:
        """Every pending record of the repositories."""
        raise NotImplementedError

    def load_all(self, dataset: Dataset) -> None:
        """Every pending record."""
        raise NotImplementedError
