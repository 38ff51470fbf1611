"""A regular expression as a tree: what it matches, without how it was written.

::

    Node
    ├── Characters   one character of a set
    ├── Edge         a place between characters
    ├── Sequence     one after the other; without items, nothing
    ├── Choice       one of several
    └── Repeat       the same again and again

Groups, greediness and options are gone. `sequence`, `choice` and `repeat` leave out what changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Many
from dataclasses import dataclass
from enum import Enum

from domain.query.base.patterns.characters import Ranges, normalized


class Place(Enum):
    """Where an Edge holds: at the start, at the end, where a word begins or ends (ASCII), where none does."""

    START = 1
    END = 2
    WORD_EDGE = 3
    NO_WORD_EDGE = 4


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of these."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Edge:
    """No character, but a place."""

    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    """Each in turn."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of two or more."""

    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body at least and at most so many times; None: without end."""

    body: Node
    least: int
    most: int | None


Node = Characters | Edge | Sequence | Choice | Repeat
NOTHING = Sequence(())


def items_of(node: Node) -> tuple[Node, ...]:
    """The node as the items of a sequence."""
    return node.items if isinstance(node, Sequence) else (node,)


def parts_of(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    if isinstance(node, Sequence):
        below: tuple[Node, ...] = node.items
    elif isinstance(node, Choice):
        below = node.branches
    else:
        below = (node.body,) if isinstance(node, Repeat) else ()
    for each in below:
        yield from parts_of(each)


def sequence(items: Many[Node]) -> Node:
    """The items one after the other. The same place twice is that place."""
    made: list[Node] = []
    for item in items:
        for each in items_of(item):
            if not (isinstance(each, Edge) and made and made[-1] == each):
                made.append(each)
    return made[0] if len(made) == 1 else Sequence(tuple(made))


def choice(branches: Many[Node]) -> Node:
    """One of the branches; what all begin with stands before them, and single characters are a set."""
    if len(branches) == 1:
        return branches[0]
    rest = [items_of(branch) for branch in branches]
    common: list[Node] = []
    while all(items and items[0] == rest[0][0] for items in rest):
        common.append(rest[0][0])
        rest = [items[1:] for items in rest]
    left = [sequence(items) for items in rest]
    singles = [node.ranges for node in left if isinstance(node, Characters)]
    if len(singles) == len(left):
        return sequence([*common, Characters(normalized(part for ranges in singles for part in ranges))])
    if all(node == NOTHING for node in left):
        return sequence(common)
    return sequence([*common, Choice(tuple(left))])


def repeat(body: Node, least: int, most: int | None) -> Node:
    """The body again and again; of what has no characters, once is enough."""
    if most == 0:
        return NOTHING
    if least == most == 1:
        return body
    if not any(isinstance(part, Characters) for part in parts_of(body)):
        return body if least else NOTHING
    return Repeat(body, least, most)
