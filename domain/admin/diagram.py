"""A diagram of a repository and its neighbours: referring, referenced and owned repositories.

Each neighbour has one box, for any number of references between the two. The template draws SVG; diagram.css has the
colours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from domain.model.registry import repositories
from domain.model.repository import Repository

#: Maximum neighbours in the diagram, of all kinds together; the others are listed below it.
MOST_NEIGHBOURS = 24
#: In SVG user units.
_WIDTH, _BOX, _HEIGHT, _LINE, _MARGIN = 860, 240, 40, 50, 8
_CENTRE, _RIGHT = (_WIDTH - _BOX) // 2, _WIDTH - _BOX - _MARGIN
_LONGEST_NAME, _LONGEST_MEMBERS = 28, 36


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A neighbour of the repository in the middle, and the members that connect the two.

    kind  incoming, outgoing or owned
    """

    set_name: str
    members: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class Box:
    """A neighbour's box; path is the line to the middle, as the attribute `d` of SVG."""

    neighbour: Neighbour
    name: str
    members: str
    x: int
    y: int
    path: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """The box in the middle, the boxes of its neighbours, and the neighbours that do not fit."""

    set_name: str
    name: str
    x: int
    y: int
    height: int
    boxes: tuple[Box, ...]
    others: tuple[Neighbour, ...]
    width: int = _WIDTH
    box_width: int = _BOX
    box_height: int = _HEIGHT

    @property
    def shown_from(self) -> int:
        """Left edge of the drawn part: a side without neighbours is cut off."""
        return 0 if any(box.x < self.x for box in self.boxes) else self.x - _MARGIN

    @property
    def shown_width(self) -> int:
        """Width of the drawn part."""
        ends_at = self.width if any(box.x > self.x for box in self.boxes) else self.x + _BOX + _MARGIN
        return ends_at - self.shown_from


def diagram(repository: Repository[Any]) -> Diagram:
    """The diagram of a repository."""
    kinds = [_incoming(repository), _outgoing(repository), _owned(repository)]
    shown = _limited(kinds)
    left, right = list(shown[0]), list(shown[1])
    for each in shown[2]:
        (left if len(left) < len(right) else right).append(each)
    height = max(len(left), len(right), 1) * _LINE + 2 * _MARGIN
    boxes = [*_column(left, _MARGIN, height), *_column(right, _RIGHT, height)]
    others = [each for all_, some in zip(kinds, shown, strict=True) for each in all_[len(some) :]]
    name = _short(repository.set_name.rpartition("_")[2], _LONGEST_NAME)
    return Diagram(repository.set_name, name, _CENTRE, (height - _HEIGHT) // 2, height, tuple(boxes), tuple(others))


def _incoming(repository: Repository[Any]) -> list[Neighbour]:
    """Repositories that refer to it, except its parts, which are neighbours of the kind owned."""
    found = (
        (each.set_name, attribute.name)
        for each in repositories
        for attribute in each.references.values()
        if attribute.target == repository.name and not attribute.owner
    )
    return _grouped(found, "incoming")


def _outgoing(repository: Repository[Any]) -> list[Neighbour]:
    references = repository.references.values()
    return _grouped(((repositories[each.target].set_name, each.name) for each in references), "outgoing")


def _owned(repository: Repository[Any]) -> list[Neighbour]:
    children = repository.collections.values()
    return _grouped(((repositories[child.repository].set_name, child.name) for child in children), "owned")


def _grouped(found: Iterable[tuple[str, str]], kind: str) -> list[Neighbour]:
    members: dict[str, list[str]] = {}
    for set_name, member in found:
        members.setdefault(set_name, []).append(member)
    return [Neighbour(set_name, tuple(names), kind) for set_name, names in members.items()]


def _limited(kinds: list[list[Neighbour]]) -> list[list[Neighbour]]:
    """The first neighbours of each kind: an equal share of the places, plus places that other kinds do not need."""
    counts = [0] * len(kinds)
    for _ in range(MOST_NEIGHBOURS):
        waiting = [index for index, each in enumerate(kinds) if counts[index] < len(each)]
        if not waiting:
            break
        counts[min(waiting, key=lambda index: counts[index])] += 1
    return [each[:count] for each, count in zip(kinds, counts, strict=True)]


def _column(neighbours: list[Neighbour], x: int, height: int) -> list[Box]:
    top, middle = (height - len(neighbours) * _LINE) // 2, height // 2
    result = []
    for index, each in enumerate(neighbours):
        y = top + index * _LINE + (_LINE - _HEIGHT) // 2
        at = y + _HEIGHT // 2
        ends = [(_CENTRE, middle), (x + _BOX, at)] if x < _CENTRE else [(_CENTRE + _BOX, middle), (x, at)]
        (start, first), (end, last) = reversed(ends) if each.kind == "incoming" else ends
        bend = (start + end) // 2
        path = f"M{start} {first}C{bend} {first} {bend} {last} {end} {last}"
        name, members = each.set_name.rpartition("_")[2], ", ".join(each.members)
        result.append(Box(each, _short(name, _LONGEST_NAME), _short(members, _LONGEST_MEMBERS), x, y, path))
    return result


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
