"""Dispatch of events to subscribers (spec 05, 5.1). Rules subscribe (rules.engine); the dataset knows no subscriber."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from domain.dataset.records.record import Record, UnitOfWork


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event that happened.

    parameter    normalised parameter (attribute or state name), "" where the type has none
    attributes   event attribute (with `$`) → canonical value
    """

    type: str
    record: Record
    dataset: UnitOfWork
    parameter: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Subscriber(Protocol):
    """A receiver of events."""

    def watches(self, repository: str, event: str) -> Collection[str]:
        """The parameters of the event type that it watches on the repository now; "" for a type without parameters.

        Called before an occurrence is prepared; without a match no occurrence is prepared.
        """
        ...

    def handle(self, occurrence: Occurrence) -> None:
        """React. An exception cancels the operation that raised the event."""
        ...


_subscribers: list[Subscriber] = []


def subscribe(subscriber: Subscriber) -> None:
    """Add a subscriber, once, at start-up."""
    if subscriber not in _subscribers:
        _subscribers.append(subscriber)


def watched(repository: str, event: str) -> Collection[str]:
    """The parameters that any subscriber watches; the dataset calls this before it prepares an occurrence."""
    found = [subscriber.watches(repository, event) for subscriber in _subscribers]
    return found[0] if len(found) == 1 else frozenset[str]().union(*found)


def dispatch(occurrence: Occurrence) -> None:
    """Tell every subscriber, in order of subscription."""
    for subscriber in _subscribers:
        subscriber.handle(occurrence)
