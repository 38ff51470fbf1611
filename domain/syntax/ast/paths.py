"""Nodes of resource paths (Part 2, section 4)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

from domain.syntax.ast.expressions import Expression, Node
from domain.syntax.ast.options import Arguments, Key


@dataclass(frozen=True, slots=True)
class Segment(Node):
    """One part of a resource path (section 4)."""


@dataclass(frozen=True, slots=True)
class NameSegment(Segment):
    """An entity set, singleton, property, type cast, operation or operation import; see NameStep for the fields."""

    name: str
    suffixes: tuple[Key | Arguments, ...] = ()


@dataclass(frozen=True, slots=True)
class LiteralSegment(Segment):
    """A decoded segment that is not a name: a key as segment (4.3.6) or an ordinal index (4.11).

    A key in the form of a name is a NameSegment.
    """

    text: str


@dataclass(frozen=True, slots=True)
class KeywordSegment(Segment):
    """``$count $ref $value $each $query`` after a segment, or ``$all $batch $entity $metadata`` at the start."""

    name: OneOf["$count", "$ref", "$value", "$each", "$query", "$all", "$batch", "$entity", "$metadata"]


@dataclass(frozen=True, slots=True)
class FilterSegment(Segment):
    """``$filter(predicate)``, often a ParameterAlias; key selects one of the matches."""

    predicate: Expression
    key: Key | Arguments | None = None


@dataclass(frozen=True, slots=True)
class CrossjoinSegment(Segment):
    """``$crossjoin(A,B)``."""

    entity_sets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResourcePath(Node):
    """The segments below the service root; none for the service document."""

    segments: tuple[Segment, ...]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments)

    def __len__(self) -> int:
        return len(self.segments)
