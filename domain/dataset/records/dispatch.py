"""Dispatches events to subscribers (spec 05, 5.1), such as rules.engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from domain.dataset.records.record import Record, UnitOfWork


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of an event.

    parameter    normalised parameter (attribute or state name), "" if the type has none
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
        """The watched parameters of the event type on the repository; "" for a type without parameters.

        Called before an occurrence is prepared, which only happens if a parameter matches.
        """
        ...

    def handle(self, occurrence: Occurrence) -> None:
        """Handle an occurrence. An exception cancels the operation that raised the event."""
        ...

    def listeners(self, repository: str, event: str) -> Collection[str]:
        """The names of the listeners, such as rules, that `handle` would run on an event without a parameter."""
        ...


_subscribers: list[Subscriber] = []


def subscribe(subscriber: Subscriber) -> None:
    """Add a subscriber, once, at start-up."""
    if subscriber not in _subscribers:
        _subscribers.append(subscriber)


def watched(repository: str, event: str) -> Collection[str]:
    """The parameters that any subscriber watches; the dataset calls this before it prepares an occurrence."""
    result = [subscriber.watches(repository, event) for subscriber in _subscribers]
    return result[0] if len(result) == 1 else frozenset[str]().union(*result)


def listeners(repository: str, event: str) -> list[str]:
    """The listeners of all subscribers on an event without a parameter, such as the codes of rules."""
    return [name for subscriber in _subscribers for name in subscriber.listeners(repository, event)]


def dispatch(occurrence: Occurrence) -> None:
    """Call every subscriber, in order of subscription."""
    for subscriber in _subscribers:
        subscriber.handle(occurrence)
