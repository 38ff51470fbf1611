"""The result of a commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.dataset.records.record import Record


@dataclass(slots=True)
class CommitResult:
    """What a commit did: records as they were written, by fate; `touched` are roots of which only parts changed."""

    inserted: list[Record] = field(default_factory=list)
    updated: list[Record] = field(default_factory=list)
    deleted: list[Record] = field(default_factory=list)
    touched: list[Record] = field(default_factory=list)
    #: (repository, guid, event) of the COMMITTED events that subscribers watch
    committed_events: list[tuple[str, str, str]] = field(default_factory=list)
    #: of these events: what acted in the commits that led to them, oldest first
    lineage: tuple[str, ...] = ()
