"""The result of a commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.dataset.records.record import Record, State


@dataclass(frozen=True, slots=True)
class CommittedEvent:
    """A COMMITTED event that a subscriber watches.

    state           what the commit did with the entity: Added, Modified or Deleted
    values, custom  of a deleted entity, as it was; None for others, which are loaded
    """

    repository: str
    id: str
    event: str
    state: State
    values: Mapping[str, Any] | None = None
    custom: Mapping[str, Any] | None = None


@dataclass(slots=True)
class CommitResult:
    """Written records by kind of write; `touched` are roots of which only parts changed.

    hidden, former_custom   of a dry run, by the record's key: rows that were hidden from the caller, and custom
                            properties as they were
    """

    inserted: list[Record] = field(default_factory=list)
    updated: list[Record] = field(default_factory=list)
    deleted: list[Record] = field(default_factory=list)
    touched: list[Record] = field(default_factory=list)
    #: the record whose row the database refused, if known
    refused: Record | None = None
    committed_events: list[CommittedEvent] = field(default_factory=list)
    #: the rules and scripts of the commits that led to `committed_events`, oldest first
    lineage: tuple[str, ...] = ()
    hidden: set[tuple[str, str]] = field(default_factory=set)
    former_custom: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
