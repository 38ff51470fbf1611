"""A regular expression as a tree, without its notation.

::

    Node
    ├── Characters   one character of a set
    ├── Edge         a place between characters
    ├── Sequence     one after the other; without items, empty
    ├── Choice       one of several
    └── Repeat       a repetition

Groups, greediness and options are removed. `sequence`, `choice` and `repeat` simplify.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Many
from dataclasses import dataclass
from enum import Enum

from domain.query.base.regex.characters import Ranges, normalized


class Place(Enum):
    """Position of an Edge: start, end, at a word boundary (ASCII), not at one."""

    START = 1
    END = 2
    WORD_EDGE = 3
    NO_WORD_EDGE = 4


@dataclass(frozen=True, slots=True)
class Characters:
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Edge:
    """A zero-width position."""

    place: Place


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Repetition of the body from `least` to `most` times; None: unlimited."""

    body: Node
    least: int
    most: int | None


Node = Characters | Edge | Sequence | Choice | Repeat
NOTHING = Sequence(())


def items_of(node: Node) -> tuple[Node, ...]:
    """The node as the items of a sequence."""
    return node.items if isinstance(node, Sequence) else (node,)


def parts_of(node: Node) -> Iterator[Node]:
    """The node and all its descendants."""
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
    """The items one after the other; adjacent equal edges are merged."""
    result: list[Node] = []
    for item in items:
        for each in items_of(item):
            if not (isinstance(each, Edge) and result and result[-1] == each):
                result.append(each)
    return result[0] if len(result) == 1 else Sequence(tuple(result))


def choice(branches: Many[Node]) -> Node:
    """One of the branches, with common prefixes factored out; single characters become a set."""
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
    """A repetition of the body; of a body without characters at most once."""
    if most == 0:
        return NOTHING
    if least == most == 1:
        return body
    if not any(isinstance(part, Characters) for part in parts_of(body)):
        return body if least else NOTHING
    return Repeat(body, least, most)
