"""Trees without their literal values, so that a plan made for one tree serves all of the same shape."""

from dataclasses import fields
from typing import Any, Final, TypeVar, cast

from domain.syntax.ast import Literal, LiteralKind, Node, PrimitiveValue, Slot

Tree = TypeVar("Tree")

_STRUCTURAL: Final = frozenset({LiteralKind.NULL, LiteralKind.BOOLEAN})
"""Kinds that stay: comparing with null is another operation, and true or false decides what is planned."""

_FIELD_NAMES: Final[dict[type[Node], tuple[tuple[str, ...], tuple[str, ...]]]] = {}
"""Class of node → names of its fields, and of those that may hold nodes."""


def lift_literals(node: Tree) -> tuple[Tree, tuple[PrimitiveValue, ...]]:
    """The tree with a Slot for each literal, and the values, values[slot.index] for each slot.

    node is any node, or a tuple of nodes. The result hashes and compares by shape: two requests that differ only in
    values have equal trees, whatever their positions. Lifted are all Literal nodes, also in $search, $top and $skip,
    keys and arguments, except null, true and false. What is not a Literal node is structure and stays: names,
    $levels, $index, $count, the distance in a hierarchy; and the fields $skiptoken, $deltatoken, $id, $format and
    custom of QueryOptions, which a cache of plans should replace before. The number of items in a list is structure
    as well. A Slot keeps the literal's kind and type name, since plans differ by type.
    """
    values: list[PrimitiveValue] = []
    lifted = _lifted(node, values)
    return cast(Tree, lifted), tuple(values)


def _lifted(old: object, values: list[PrimitiveValue]) -> object:
    """old with slots. One frame for each node, and one for a tuple: trees may be as deep as the parser allows."""
    if isinstance(old, tuple):
        new = []
        is_changed = False
        for item in old:
            lifted = _lifted(item, values)
            is_changed = is_changed or lifted is not item
            new.append(lifted)
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
        lifted = _lifted(inner, values)
        if lifted is not inner:
            changes[name] = lifted
    if not changes:
        return old
    for name in all_names:
        if name not in changes:
            changes[name] = getattr(old, name)
    return kind(**changes)


def _field_names(kind: type[Node]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The entry of _FIELD_NAMES; a field of plain text, number or flag holds no node."""
    found = fields(kind)
    inner = tuple(field.name for field in found if field.type not in (str, int, bool, "str", "int", "bool"))
    names = tuple(field.name for field in found), inner
    _FIELD_NAMES[kind] = names
    return names
