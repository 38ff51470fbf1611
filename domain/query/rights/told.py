"""Rows that tell of entities of other repositories, such as the change history (Declaration.tells_of, seen_through).

A caller sees such a row only if he may see the entity as it is now: of an entity that was deleted, only a caller whose
rights hide no row of its repository. Inside the JSON of the row no reference stands that may lead to a hidden entity.
Of a row with a text that was made of data of several repositories, such as the request of a webhook, nothing can be cut
out: only a caller whose rights hide no row of these repositories sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from domain.model.custom_properties import definitions
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.access import Access
from domain.query.base.bound import Bound, Source


@dataclass(frozen=True, slots=True)
class Told(Bound):
    """Whether the caller may see the entity that the row tells of."""

    source: Source
    access: Access


@dataclass(frozen=True, slots=True)
class VisibleNow(Bound):
    """Whether the caller may see the row as it is now, in a read as of a time."""

    source: Source
    access: Access


@dataclass(frozen=True, slots=True)
class Subjects:
    """The repositories whose entities a caller may see: of `whole` all, also former ones, of `partly` some."""

    whole: tuple[Repository[Any], ...]
    partly: tuple[Repository[Any], ...]

    @property
    def hidden(self) -> list[Repository[Any]]:
        """The repositories of which some row, or every row, is hidden."""
        return [repository for repository in repositories if repository not in self.whole]


def subjects_of(access: Access) -> Subjects:
    """The repositories of which the caller may be told."""
    whole: list[Repository[Any]] = []
    partly: list[Repository[Any]] = []
    for repository in repositories:
        if repository.view_of or repository.telling or repository.seen_through or not access.readable(repository):
            continue
        if access.restricts(repository):
            partly.append(repository)
        else:
            whole.append(repository)
    return Subjects(tuple(whole), tuple(partly))


def hidden_references(access: Access) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(repository, names in its history of what may lead to entities that are hidden from the caller).

    These are references, by API name, and custom properties whose values are entities: `@code`, and all of an entity
    together.
    """
    for repository in repositories:
        hidden = tuple(
            name
            for name, reference in repository.references.items()
            if not access.readable(repositories[reference.target]) or access.restricts(repositories[reference.target])
        )
        codes = [f"@{known.code}" for known in definitions(repository.name).values() if access.restricts_values(known)]
        if codes:
            hidden = (*hidden, "@custom", *codes)
        if hidden:
            yield repository.name, hidden


__all__ = ["Subjects", "Told", "VisibleNow", "hidden_references", "subjects_of"]
