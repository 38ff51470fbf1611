"""Caches of the read engine: query options without their literals, and plans.

A request's options are split into their shape (the tree without literals) and the literals; plans are cached by

    operation, repository, shape, rights (permissions.key), representation (shape_key), database vendor,
    registry.generation, cache version of the custom properties, repositories without history at that time (AsOf.key)

so a read with a cached plan parses, binds and plans nothing. No entry is invalidated: a change of the model, of custom
properties or of rights changes the key, and entries that were not used for long are dropped. The split is cached, too,
by the identity of the options object, since callers cache parsed URLs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from itertools import chain
from typing import Any, TypeVar

from prometheus_client import Counter

from domain.model.custom_properties import CACHE_VERSION
from domain.model.registry import repositories
from domain.query.base.representation import ShapeKey
from domain.query.bind.type_rules import SLOT_SCALE
from domain.query.run.execute import written
from domain.query.sql.dialects import current
from domain.syntax import parameterize_literals
from domain.syntax.ast import NO_OPTIONS, Literal, Node, QueryOptions, Slot
from foundation import cache_versions, errors
from foundation.messages import TranslatableMessage as Message
from identity.context import CallContext
from identity.lru import GenerationalCache

_requested = Counter("platform_query_plans", "Plans of reads that were asked for.", ("outcome",))
_from_cache, _planned = _requested.labels("found"), _requested.labels("made")

V = TypeVar("V")
T = TypeVar("T")
#: Entries of a generation; a GenerationalCache has two.
PLANS_KEPT = 1000
OPTIONS_KEPT = 500
#: Maximum literals of a cached shape: a list of a thousand keys rarely repeats.
VALUES_KEPT = 200
#: Maximum parts of a cached shape, the largest of which has some 50 KB.
PARTS_KEPT = 8000
#: Maximum characters of the texts among a query's cached literals, and of the statements of a cached plan.
TEXT_KEPT = 1024
STATEMENTS_KEPT = 50_000


class Shape:
    """Options without literals. Equal trees share one Shape, which hashes by identity, and so fast."""

    __slots__ = ("is_kept", "options")

    def __init__(self, options: QueryOptions, *, is_kept: bool = True) -> None:
        self.options = options
        self.is_kept = is_kept


@dataclass(frozen=True, slots=True)
class Prepared:
    """Options split into shape and values. top and skip are the values of $top and $skip."""

    shape: Shape
    values: tuple[Any, ...]
    top: int | None
    skip: int | None
    count: bool
    skiptoken: str | None


_prepared: GenerationalCache[int, tuple[QueryOptions, Prepared]] = GenerationalCache(OPTIONS_KEPT)
_shapes: GenerationalCache[Any, Shape] = GenerationalCache(PLANS_KEPT)
plans: GenerationalCache[tuple[Hashable, ...], Any] = GenerationalCache(PLANS_KEPT)


def prepare(options: QueryOptions) -> Prepared:
    """The options split into shape and values."""
    # The entry keeps a reference to the options, so their id is not reused.
    known = _prepared.get(id(options))
    if known is not None and known[0] is options:
        return known[1]
    result = _split(options)
    if result.shape.is_kept and _text_length(options, result) <= TEXT_KEPT:
        _prepared.put(id(options), (options, result))
    return result


def _text_length(options: QueryOptions, prepared: Prepared) -> int:
    """Characters of what the options have beside their shape."""
    texts = [*chain.from_iterable(options.custom), options.skiptoken or "", options.id or "", options.format or ""]
    return sum(map(len, texts)) + sum(len(each) for each in prepared.values if isinstance(each, str | bytes))


def _split(options: QueryOptions) -> Prepared:
    for name, option in (("deltatoken", "deltatoken"), ("index", "index"), ("from_time", "from"), ("to_time", "to")):
        if getattr(options, name) is not None:
            raise errors.NotSupported(Message("${0} in this place", option))
    bare = replace(
        options,
        format=None,
        skiptoken=None,
        deltatoken=None,
        schemaversion=None,
        custom=(),
        count=None,
        id=None,
        at=None,
    )
    parameterized, values = parameterize(bare)
    shape = shape_of(parameterized, len(values))
    return Prepared(
        shape,
        values,
        _number(parameterized.top, values),
        _number(parameterized.skip, values),
        bool(options.count),
        options.skiptoken,
    )


def parameterize(tree: T) -> tuple[T, tuple[Any, ...]]:
    """Split a tree into one without literals, and the literals; unchanged if a decimal has too many places.

    Plans assume at most SLOT_SCALE decimal places for a parameterized literal; one with more must stay in the tree.
    """
    parameterized, values = parameterize_literals(tree)
    for value in values:
        if isinstance(value, Decimal):
            exponent = value.as_tuple().exponent
            if isinstance(exponent, int) and exponent < -SLOT_SCALE:
                return tree, ()
    return parameterized, values


def shape_of(parameterized: Any, values: int) -> Shape:
    """The Shape of all equal trees; of a tree that is too large a new one, which is not cached."""
    if values > VALUES_KEPT:
        return Shape(parameterized, is_kept=False)
    shape = _shapes.get(parameterized)
    if shape is None:
        shape = Shape(parameterized, is_kept=_is_small(parameterized))
        if shape.is_kept:
            _shapes.put(parameterized, shape)
    return shape


def _is_small(tree: Any) -> bool:
    """Whether a tree has at most PARTS_KEPT fields and characters of names."""
    left, waiting = PARTS_KEPT, [tree]
    while waiting and left >= 0:
        part = waiting.pop()
        left -= len(part) if isinstance(part, str) else 1
        if isinstance(part, tuple):
            waiting.extend(part)
        elif isinstance(part, Node):
            waiting.extend(getattr(part, each.name) for each in fields(part))
    return left >= 0


def _number(node: Literal | Slot | None, values: tuple[Any, ...]) -> int | None:
    if node is None:
        return None
    value: Any = values[node.index] if isinstance(node, Slot) else node.value
    # Databases have 64-bit row numbers.
    return min(int(value), 2**62)


NOTHING = prepare(NO_OPTIONS)


def plan_for(key: tuple[Hashable, ...], ctx: CallContext | None, shape: ShapeKey | None, make: Callable[[], V]) -> V:
    """The cached plan for a key, or a new one. Raises BadRequest if its expressions are nested too deeply."""
    full = (
        key,
        ctx.permissions.key if ctx is not None else None,
        shape,
        current().vendor,
        repositories.generation,
        cache_versions.current(CACHE_VERSION),
        ctx.at.key if ctx is not None and ctx.at is not None else None,
    )
    known: V | None = plans.get(full)
    if known is None:
        _planned.inc()
        before = written.characters
        try:
            known = make()
        except RecursionError as exc:
            # The parser bounds the nesting of each expression; aliases and computed names nest them in one another.
            raise errors.BadRequest(errors.QUERY_TOO_LARGE, Message("nested too deeply")) from exc
        is_short = written.characters - before <= STATEMENTS_KEPT
        if is_short and all(part.is_kept for part in key if isinstance(part, Shape)):
            plans.put(full, known)
    else:
        _from_cache.inc()
    return known


def clear() -> None:
    """Clear all caches of the read engine (`/api/domain/reset`, tests)."""
    for each in (_prepared, _shapes, plans):
        each.clear()
