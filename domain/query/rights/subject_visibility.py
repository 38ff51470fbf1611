"""Visibility of rows about entities of other repositories, such as the change history.

Their repositories declare describes or visible_through (Declaration). A caller sees such a row only if they may see the
entity in its current state; if it was deleted, only if their rights hide no row of its repository. References that may
lead to hidden entities are removed from the JSON of the row. A row with a text composed of data of several
repositories, such as the request of a webhook, is visible only to callers whose rights hide no row of these
repositories.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from domain.model.custom_properties import definitions
from domain.model.former_attributes import former_names
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.access import Access
from domain.query.base.bound import Bound, Source


@dataclass(frozen=True, slots=True)
class SubjectVisible(Bound):
    """Condition: the caller may see the entity that the row is about."""

    source: Source
    access: Access


@dataclass(frozen=True, slots=True)
class VisibleNow(Bound):
    """Condition of a read as of a time: the caller may see the current state of the row."""

    source: Source
    access: Access


@dataclass(frozen=True, slots=True)
class Subjects:
    """The repositories whose entities a caller may see: in `whole` all, also deleted ones, in `partly` some."""

    whole: tuple[Repository[Any], ...]
    partly: tuple[Repository[Any], ...]

    @property
    def hidden(self) -> list[Repository[Any]]:
        """The repositories of which some row, or every row, is hidden."""
        return [repository for repository in repositories if repository not in self.whole]


def subjects_of(access: Access) -> Subjects:
    """The repositories whose entities the caller may see in rows about them."""
    whole: list[Repository[Any]] = []
    partly: list[Repository[Any]] = []
    for repository in repositories:
        if (
            repository.view_of
            or repository.describing_repository
            or repository.visible_through
            or not access.readable(repository)
        ):
            continue
        if access.restricts(repository):
            partly.append(repository)
        else:
            whole.append(repository)
    return Subjects(tuple(whole), tuple(partly))


def hidden_references(access: Access) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(repository, keys in its history's JSON whose values may refer to entities that are hidden from the caller).

    These are references by API name, custom properties whose values are entities (`@code`), and `@custom`, which has
    all custom properties of an entity.
    """
    for repository in repositories:
        hidden = tuple(
            key
            for name, reference in repository.references.items()
            if not access.readable(repositories[reference.target]) or access.restricts(repositories[reference.target])
            for key in (name, *former_names(repository.former_attributes, name))
        )
        codes = [f"@{known.code}" for known in definitions(repository.name).values() if access.restricts_values(known)]
        if codes:
            hidden = (*hidden, "@custom", *codes)
        if hidden:
            yield repository.name, hidden


__all__ = ["Subjects", "SubjectVisible", "VisibleNow", "hidden_references", "subjects_of"]
