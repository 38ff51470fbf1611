"""Replaces literals of a tree by slots, so that one cached plan serves all requests of the same structure."""

from dataclasses import fields
from typing import Any, Final, TypeVar, cast

from domain.syntax.ast import Literal, LiteralKind, Node, PrimitiveValue, Slot

Tree = TypeVar("Tree")

_STRUCTURAL: Final = frozenset({LiteralKind.NULL, LiteralKind.BOOLEAN})
"""Kinds that stay literals: comparing with null is another operation, and true or false changes the plan."""

_FIELD_NAMES: Final[dict[type[Node], tuple[tuple[str, ...], tuple[str, ...]]]] = {}
"""Class of node → names of its fields, and of those that may hold nodes."""


def parameterize_literals(node: Tree) -> tuple[Tree, tuple[PrimitiveValue, ...]]:
    """The tree with a Slot for each literal, and the values, values[slot.index] for each slot.

    node is any node, or a tuple of nodes. The result hashes and compares by structure: two requests that differ only in
    values have equal trees, whatever their positions. All Literal nodes are replaced, also in $search, $top and $skip,
    keys and arguments, except null, true and false. Other fields are structure and stay: names, $levels, $index,
    $count, the distance in a hierarchy; and the fields $skiptoken, $deltatoken, $id, $format and custom of
    QueryOptions, which a cache of plans should replace before. The number of items in a list is structure as well. A
    Slot keeps the literal's kind and type name, since plans differ by type.
    """
    values: list[PrimitiveValue] = []
    parameterized = _parameterized(node, values)
    return cast(Tree, parameterized), tuple(values)


def _parameterized(old: object, values: list[PrimitiveValue]) -> object:
    """old with slots. One stack frame for each node, and one for a tuple: trees may be as deep as the parser allows."""
    if isinstance(old, tuple):
        new = []
        is_changed = False
        for item in old:
            parameterized = _parameterized(item, values)
            is_changed = is_changed or parameterized is not item
            new.append(parameterized)
        return tuple(new) if is_changed else old
    if not isinstance(old, Node):
        return old
    if isinstance(old, Literal):
        if old.kind in _STRUCTURAL:
            return old
        values.append(old.value)
        return Slot(len(values) - 1, old.kind, old.type_name, position=old.position)
    kind = type(old)
    all_names, inner_names = _FIELD_NAMES.get(kind) or _field_names(kind)
    changes: dict[str, Any] = {}
    for name in inner_names:
        inner = getattr(old, name)
        if inner is None or inner == ():
            continue
        parameterized = _parameterized(inner, values)
        if parameterized is not inner:
            changes[name] = parameterized
    if not changes:
        return old
    for name in all_names:
        if name not in changes:
            changes[name] = getattr(old, name)
    return kind(**changes)


def _field_names(kind: type[Node]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The entry of _FIELD_NAMES; a field of plain text, number or flag contains no node."""
    result = fields(kind)
    inner = tuple(field.name for field in result if field.type not in (str, int, bool, "str", "int", "bool"))
    names = tuple(field.name for field in result), inner
    _FIELD_NAMES[kind] = names
    return names
