"""What is kept between requests: lifted trees and plans.

A request's options are split into their shape (the tree without literal values) and the values; plans are kept by

    verb, repository, shape, rights (permissions.key), representation (shape_key), database vendor,
    registry.generation, the stamp of the custom properties

so a warm read parses, binds and plans nothing. Nothing is ever invalidated in place: a change of the model, of custom
properties or of rights changes the key, and what is no longer asked for is dropped as the oldest. Options objects that
come again as the same object (the caller keeps parsed URLs by text) skip the lifting, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Generic, TypeVar

from prometheus_client import Counter

from domain.model.registry import repositories
from domain.query.base.custom_properties import STAMP
from domain.query.base.representation import ShapeKey
from domain.query.bind.binder import SLOT_SCALE
from domain.query.sql.dialects import current
from domain.syntax import lift_literals
from domain.syntax.ast import NO_OPTIONS, Literal, QueryOptions, Slot
from foundation import errors, stamps
from foundation.phrases import Phrase
from identity.context import CallContext

_asked = Counter("platform_query_plans", "Plans of reads that were asked for.", ("outcome",))
_found, _made = _asked.labels("found"), _asked.labels("made")

V = TypeVar("V")
T = TypeVar("T")
PLANS_KEPT = 2000
OPTIONS_KEPT = 1000
#: Literals of a request whose shape is kept; a list of a thousand keys comes once.
VALUES_KEPT = 200


class Bounded(Generic[V]):
    """A dict that forgets its oldest entries. Reading takes no lock: single dict operations are atomic."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: dict[Hashable, V] = {}
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> V | None:
        """The entry, or None."""
        found = self._entries.get(key)
        if found is None:
            self.misses += 1
        else:
            self.hits += 1
        return found

    def put(self, key: Hashable, value: V) -> None:
        """Keep an entry."""
        with self._lock:
            while len(self._entries) >= self._size:
                self._entries.pop(next(iter(self._entries)), None)
            self._entries[key] = value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


class Shape:
    """A lifted tree that hashes by identity: equal trees share one Shape, so that plan keys hash fast."""

    __slots__ = ("is_kept", "options")

    def __init__(self, options: QueryOptions, *, is_kept: bool = True) -> None:
        self.options = options
        self.is_kept = is_kept


@dataclass(frozen=True, slots=True)
class Prepared:
    """Options in their two halves. top and skip are the values of $top and $skip."""

    shape: Shape
    values: tuple[Any, ...]
    top: int | None
    skip: int | None
    count: bool
    skiptoken: str | None


_prepared: Bounded[tuple[QueryOptions, Prepared]] = Bounded(OPTIONS_KEPT)
_shapes: Bounded[Shape] = Bounded(PLANS_KEPT)
plans: Bounded[Any] = Bounded(PLANS_KEPT)


def prepare(options: QueryOptions) -> Prepared:
    """The options split into shape and values."""
    # The entry keeps the options alive, so its id cannot come again for something else.
    known = _prepared.get(id(options))
    if known is not None and known[0] is options:
        return known[1]
    made = _split(options)
    if made.shape.is_kept:
        _prepared.put(id(options), (options, made))
    return made


def _split(options: QueryOptions) -> Prepared:
    for name in ("deltatoken", "index"):
        if getattr(options, name) is not None:
            raise errors.NotSupported(Phrase("${0} in this place", name))
    bare = replace(
        options, format=None, skiptoken=None, deltatoken=None, schemaversion=None, custom=(), count=None, id=None
    )
    lifted, values = lift(bare)
    shape = shape_of(lifted, len(values))
    return Prepared(
        shape, values, _number(lifted.top, values), _number(lifted.skip, values), bool(options.count), options.skiptoken
    )


def lift(tree: T) -> tuple[T, tuple[Any, ...]]:
    """The tree without its literals, and these; a tree with a decimal too fine for a plan to be shared stays whole.

    A plan counts on the decimals of SLOT_SCALE places that attributes have; only the literal itself tells of more.
    """
    lifted, values = lift_literals(tree)
    for value in values:
        if isinstance(value, Decimal):
            exponent = value.as_tuple().exponent
            if isinstance(exponent, int) and exponent < -SLOT_SCALE:
                return tree, ()
    return lifted, values


def shape_of(lifted: Any, values: int) -> Shape:
    """The one Shape of all equal trees; one with very many values is its own, and neither it nor its plans are kept."""
    if values > VALUES_KEPT:
        return Shape(lifted, is_kept=False)
    shape = _shapes.get(lifted)
    if shape is None:
        shape = Shape(lifted)
        _shapes.put(lifted, shape)
    return shape


def _number(node: Literal | Slot | None, values: tuple[Any, ...]) -> int | None:
    if node is None:
        return None
    value: Any = values[node.index] if isinstance(node, Slot) else node.value
    # No database counts further, and no caller means more.
    return min(int(value), 2**62)


NOTHING = prepare(NO_OPTIONS)


def plan_for(key: tuple[Hashable, ...], ctx: CallContext | None, shape: ShapeKey | None, make: Callable[[], V]) -> V:
    """The kept plan for a verb's key, or a new one."""
    full = (
        key,
        ctx.permissions.key if ctx is not None else None,
        shape,
        current().vendor,
        repositories.generation,
        stamps.current(STAMP),
    )
    known: V | None = plans.get(full)
    if known is None:
        _made.inc()
        known = make()
        if all(part.is_kept for part in key if isinstance(part, Shape)):
            plans.put(full, known)
    else:
        _found.inc()
    return known


def clear() -> None:
    """Forget all plans (`/api/domain/reset`, tests)."""
    for each in (_prepared, _shapes, plans):
        each.clear()
