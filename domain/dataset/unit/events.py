"""Raises the events of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.dataset.records import dispatch
from domain.dataset.records.record import Record, UnitOfWork


class Events:
    """Raises events of a dataset if a subscriber watches them."""

    def __init__(self, dataset: UnitOfWork) -> None:
        self._dataset = dataset
        #: (repository, events) → parameters with a subscriber, cached until the commit
        self._watched: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}

    def forget_subscribers(self) -> None:
        """Drop the cached subscriptions: a commit may have changed rules."""
        self._watched.clear()

    def raise_event(
        self, record: Record, event: str, parameter: str = "", attributes: Mapping[str, Any] | None = None
    ) -> None:
        """Raise the event. attributes: event attribute (with `$`) → canonical value."""
        if self.watches(record, (event,), parameter):
            dispatch.dispatch(dispatch.Occurrence(event, record, self._dataset, parameter, attributes or {}))

    def watches(self, record: Record, names: tuple[str, ...], parameter: str) -> bool:
        """Whether a subscriber watches one of the events; cached by repository and events."""
        key = (record.repository.name, names)
        watched = self._watched.get(key)
        if watched is None:
            result = (dispatch.watched(key[0], event) for event in names)
            watched = self._watched[key] = frozenset[str]().union(*result)
        return parameter in watched
