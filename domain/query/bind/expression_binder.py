"""Interface of the binder for the modules of this package, with shared errors and conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from domain.model.attributes import Child
from domain.query.base.access import Access
from domain.query.base.bound import Bound, Column, Fixed, Input, Sort, Source, ValueType
from domain.query.base.scope import Scope
from domain.query.bind import literals
from domain.syntax import ast
from domain.syntax.ast import LiteralKind
from foundation import errors
from foundation.messages import TranslatableMessage as Message


class OwnedRows(Protocol):
    """An owned collection: its row variable and the rows' reference to the owner."""

    @property
    def back(self) -> Column: ...
    @property
    def variable(self) -> Source: ...


class Calculated(Protocol):
    """A calculated attribute's value, with the (row, condition) pairs of its failures."""

    @property
    def bound(self) -> Bound: ...
    @property
    def failures(self) -> tuple[tuple[int, Bound], ...]: ...
    @property
    def failed_row(self) -> Bound | None: ...


class ExpressionBinder(Protocol):
    """The interface of domain.query.bind.binder.Binder."""

    access: Access

    def value(self, expression: ast.Expression, scope: Scope) -> Bound: ...
    def scalar(self, expression: ast.Expression, scope: Scope) -> Bound: ...
    def predicate(self, expression: ast.Expression, scope: Scope) -> Bound: ...
    def use(self, computed: Bound) -> Bound: ...
    def compare(self, operator: Any, left: Bound, right: Bound, position: int) -> Bound: ...
    def alias_expression(self, expression: ast.Expression) -> ast.Expression: ...
    def member(self, source: Source, name: str) -> Any: ...
    def rows(self, source: Source, child: Child) -> OwnedRows: ...
    def calculated(self, source: Source, name: str) -> Calculated | None: ...
    def resolving(self, name: str, use: Callable[[ast.Expression], Any]) -> Any: ...


def mismatch(position: int, reason: str) -> errors.BadRequest:
    return errors.BadRequest(errors.TYPE_MISMATCH, position, reason)


def retype(value: Input, target: ValueType, what: str, position: int | None = None) -> Input:
    """The literal as a value of the type. Raises BadRequest for its kind or, if the value is known, for the value."""
    at = value.position if position is None else position
    if value.literal is None or value.literal is LiteralKind.NULL:
        return value
    is_other_enum = value.literal is LiteralKind.ENUM and value.type.enum is not target.enum
    if value.literal not in literals.ACCEPTED[target.sort] or is_other_enum:
        raise mismatch(at, Message("{0} cannot stand for {1}", value.type, target))
    convert = literals.checked(literals.converter(target), target, what)
    if isinstance(value.origin, Fixed):
        convert(value.origin.value)
    scale = value.type.scale if target.sort is Sort.NUMBER else None
    result = replace(target, scale=scale, integer=value.type.integer) if target.sort is Sort.NUMBER else target
    return replace(value, type=result, convert=convert)
