"""Names and types: from the syntax tree to the bound tree, against the registry (OData 4.01 Part 2, 5.1.1).

Binding happens before anything is planned, so an unknown name or a wrong type is a 400 with its position and never a
join. Paths are bound in `paths`, functions in `functions`, texts in several languages in `texts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from domain.model.registry import repositories
from domain.query.base.access import CALL_VALUES, VARIABLE_PREFIX, Access
from domain.query.base.bound import (
    BOOL,
    CUSTOM,
    DATETIME,
    GUID,
    INTEGER,
    NULL,
    REAL,
    STATE,
    STRING,
    Bound,
    Call,
    Choice,
    Column,
    Compare,
    CustomText,
    Fixed,
    FromCall,
    FromSlot,
    Input,
    Logic,
    Member,
    Negation,
    Sort,
    Source,
    ValueType,
    any_of,
    call,
    decimal_type,
)
from domain.query.base.scope import Scope
from domain.query.bind import literals
from domain.query.bind.expression_binder import mismatch, retype
from domain.query.bind.functions import bind_cast, bind_function, bind_isof, bind_temporal_arithmetic
from domain.query.bind.paths import bind_in_collection, bind_object_comparison, bind_path
from domain.query.bind.texts import as_scalar, compare_texts, texts_membership
from domain.syntax import ast
from domain.syntax.ast import LiteralKind
from foundation import errors
from foundation.enums import EnumType
from foundation.phrases import Phrase

_THIS_EXPRESSION = Phrase("this expression")
_THIS_COMPARISON = Phrase("this comparison")
_ORDERED = frozenset(
    {Sort.STRING, Sort.NUMBER, Sort.DATE, Sort.DATETIME, Sort.TIME, Sort.DURATION, Sort.ENUM, Sort.STATE, Sort.GUID}
)
_SCALE_MAX = 12
_LITERAL_SCALE_MAX = 18
#: Decimal places that a lifted decimal literal is taken to have at most (see cache.lift).
SLOT_SCALE = 6


#: Of all expressions of a query, with what aliases and computed names stand for in place of these. A text has at most
#: 50,000 parts itself.
MAX_PARTS = 60_000


class Binder:
    """Binds the expressions of one query. Sources that it makes are numbered, so that lambda variables stay apart."""

    def __init__(self, access: Access, aliases: Mapping[str, ast.Expression] | None = None) -> None:
        self.access = access
        self._aliases = aliases or {}
        self._resolving: list[str] = []
        self._parts = 0
        #: id of a computed value → (the value, parts that it has wherever its name stands)
        self._computed: dict[int, tuple[Bound, int]] = {}
        self._last_number = 0

    def next_number(self) -> int:
        """A number for a new root source."""
        self._last_number += 1
        return self._last_number

    # --- entries --------------------------------------------------------------------------------------------------

    def value(self, expression: ast.Expression, scope: Scope) -> Bound:
        """Any common expression, typed. Literals keep their natural type until something else decides."""
        self._count(1)
        return _VISITORS[type(expression)](self, expression, scope)

    def scalar(self, expression: ast.Expression, scope: Scope) -> Bound:
        """As `value`, with a multilanguage value taken as its text in the caller's language."""
        return as_scalar(self.value(expression, scope))

    def compute(self, items: Sequence[ast.ComputeItem], scope: Scope) -> Scope:
        """The scope behind $compute; later items may use earlier ones."""
        for item in items:
            before = self._parts
            bound = self.scalar(item.expression, scope)
            self._computed[id(bound)] = bound, self._parts - before
            scope = scope.with_computed({item.alias: bound})
        return scope

    def use(self, computed: Bound) -> Bound:
        """A computed value where its name stands. It is written out there, so a chain of them grows by powers."""
        _, parts = self._computed.get(id(computed), (computed, 1))
        self._count(parts)
        return computed

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > MAX_PARTS:
            raise errors.BadRequest(
                errors.BAD_QUERY_OPTION,
                "$compute",
                Phrase("names and aliases written out, it has more than {0} parts", MAX_PARTS),
            )

    def predicate(self, expression: ast.Expression, scope: Scope) -> Bound:
        """A boolean expression."""
        bound = self.value(expression, scope)
        if bound.type.sort is Sort.NULL:
            return replace(bound, type=BOOL)
        if bound.type.sort is not Sort.BOOL:
            raise mismatch(expression.position, Phrase("a condition is needed here, not {0}", bound.type))
        return bound

    # --- literals -------------------------------------------------------------------------------------------------

    def literal(self, node: ast.Literal, scope: Scope) -> Bound:
        return self._input(Fixed(node.value), node.kind, node.type_name, node.position, node.value)

    def slot(self, node: ast.Slot, scope: Scope) -> Bound:
        return self._input(FromSlot(node.index), node.kind, node.type_name, node.position, None)

    def _input(self, origin: Fixed | FromSlot, kind: LiteralKind, type_name: str, position: int, value: Any) -> Input:
        if kind is LiteralKind.NULL:
            return Input(NULL, True, Fixed(None), _as_is, kind, position)
        if kind is LiteralKind.ENUM:
            value_type = _enum_type(type_name, position)
        elif kind in literals.NATURAL:
            sort = literals.NATURAL[kind]
            value_type = INTEGER if kind is LiteralKind.INTEGER else ValueType(sort)
            if kind is LiteralKind.DECIMAL:
                value_type = decimal_type(_scale_of(value))
        else:
            raise errors.NotSupported(Phrase("{0} literals", kind.value))
        made = Input(value_type, False, origin, _as_is, kind, position)
        return retype(made, value_type, _THIS_EXPRESSION)

    def alias(self, node: ast.ParameterAlias, scope: Scope) -> Bound:
        if node.name.startswith(VARIABLE_PREFIX):
            return self._call_variable(node)
        if node.name not in self._aliases:
            # 5.1.1.15: an alias without a value stands for null.
            return Input(NULL, True, Fixed(None), _as_is, LiteralKind.NULL, node.position)
        bound: Bound = self.resolving(node.name, lambda expression: self.value(expression, scope))
        return bound

    def resolving(self, name: str, use: Callable[[ast.Expression], Any]) -> Any:
        """Call `use` with the alias's expression; an alias that leads to itself is refused."""
        if name in self._resolving:
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, f"@{name}", Phrase("the alias refers to itself"))
        self._resolving.append(name)
        try:
            return use(self._aliases[name])
        finally:
            self._resolving.pop()

    def alias_expression(self, expression: ast.Expression) -> ast.Expression:
        """The expression that an alias stands for, at any depth; other expressions are themselves."""
        for _ in range(20):
            if not isinstance(expression, ast.ParameterAlias) or expression.name not in self._aliases:
                return expression
            expression = self._aliases[expression.name]
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "@", Phrase("an alias refers to itself"))

    @staticmethod
    def _call_variable(node: ast.ParameterAlias) -> Bound:
        name = node.name.removeprefix(VARIABLE_PREFIX).replace("__", ".").lower()
        if name not in CALL_VALUES:
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name.rpartition(".")[2], f"${name.partition('.')[0]}")
        if name == "user.isadmin":
            return Input(BOOL, False, FromCall(name), _as_is, None, node.position)
        return Input(STRING, True, FromCall(name), _as_is, LiteralKind.STRING, node.position)

    # --- logic ----------------------------------------------------------------------------------------------------

    def logical(self, node: ast.Logical, scope: Scope) -> Bound:
        operands = tuple(self.predicate(operand, scope) for operand in node.operands)
        if node.operator == "or":
            operands = _gathered(operands)
            if len(operands) == 1:
                return operands[0]
        return Logic(BOOL, any(operand.nullable for operand in operands), node.operator, operands)

    def negation(self, node: ast.Not, scope: Scope) -> Bound:
        operand = self.predicate(node.operand, scope)
        # Twice not is not at all, with null as well.
        return operand.operand if isinstance(operand, Negation) else Negation(BOOL, operand.nullable, operand)

    def case(self, node: ast.Case, scope: Scope) -> Bound:
        conditions = [self.predicate(branch.condition, scope) for branch in node.branches]
        values = [self.scalar(branch.value, scope) for branch in node.branches]
        chosen = next((value for value in values if value.type.sort is not Sort.NULL), values[0])
        unified = [self.unify(value, chosen, node.position)[0] for value in values]
        result = chosen.type
        if result.sort is Sort.NUMBER:
            result = _number_result([value.type for value in unified])
        return Choice(result, True, tuple(zip(conditions, unified, strict=True)))

    # --- comparison -----------------------------------------------------------------------------------------------

    def comparison(self, node: ast.Comparison, scope: Scope) -> Bound:
        if isinstance(node.right, ast.ObjectExpression):
            return bind_object_comparison(self, node, scope)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        return self.compare(node.operator, left, right, node.position)

    def compare(self, operator: Any, left: Bound, right: Bound, position: int) -> Bound:
        """Compare two bound values; texts in several languages compare by any of them (see texts)."""
        if Sort.TEXTS in (left.type.sort, right.type.sort):
            return compare_texts(self, operator, left, right, position)
        left, right = self.unify(left, right, position)
        if operator not in ("eq", "ne") and left.type.sort not in _ORDERED and left.type.sort is not Sort.NULL:
            raise mismatch(position, Phrase("{0} has no order; use eq or ne", left.type))
        if operator not in ("eq", "ne") and left.type.sort is Sort.ENUM:
            left, right = by_number(left), by_number(right)
        return Compare(BOOL, False, operator, left, right)

    def membership(self, node: ast.Membership, scope: Scope) -> Bound:
        collection = self.alias_expression(node.collection)
        if isinstance(collection, ast.CollectionExpression):
            listed = collection.items
        elif collection is not node.collection:
            # `@p=('x')` reads as an expression in parentheses; behind `in` it is a list of one.
            listed = (collection,)
        elif isinstance(collection, ast.Path):
            return bind_in_collection(self, node, collection, scope)
        else:
            raise mismatch(node.position, Phrase("behind in stands a list or a path over a collection"))
        operand = self.value(node.operand, scope)
        items = [self.value(item, scope) for item in listed]
        if operand.type.sort is Sort.TEXTS:
            return texts_membership(self, operand, items, node.position)
        if not items:
            return Member(BOOL, False, operand, ())
        pairs = [self.unify(operand, item, node.position) for item in items]
        if any(left is not pairs[0][0] for left, _ in pairs):
            # Items of different types, such as dates among date-times: each compares in its own way.
            return any_of(*(Compare(BOOL, False, "eq", left, right) for left, right in pairs))
        return Member(BOOL, False, pairs[0][0], tuple(right for _, right in pairs))

    def has(self, node: ast.Has, scope: Scope) -> Bound:
        operand = self.value(node.operand, scope)
        if operand.type.sort not in (Sort.ENUM, Sort.STATE):
            raise mismatch(node.position, Phrase("has needs an enumeration before it"))
        return self.compare("eq", operand, self.value(node.flags, scope), node.position)

    def unify(self, left: Bound, right: Bound, position: int) -> tuple[Bound, Bound]:
        """Both sides as one type, or TYPE_MISMATCH. A literal takes the type of what it meets."""
        one, other = left.type.sort, right.type.sort
        if one is Sort.NULL or other is Sort.NULL:
            target = right.type if one is Sort.NULL else left.type
            return _null_as(left, target), _null_as(right, target)
        if Sort.CUSTOM in (one, other) and one is not other:
            return self._unify_custom(left, right, position)
        if one is other and one not in (Sort.ENUM, Sort.REFERENCE):
            return left, right
        if {one, other} == {Sort.DATE, Sort.DATETIME} and not (_retypable(left) or _retypable(right)):
            return _as_datetime(left), _as_datetime(right)
        for literal, against in ((right, left), (left, right)):
            if isinstance(literal, Input) and _retypable(literal) and not (isinstance(against, Input) and one is other):
                met = _as_datetime(against) if {one, other} == {Sort.DATE, Sort.DATETIME} else against
                made = retype(literal, met.type, _THIS_COMPARISON)
                return (met, made) if literal is right else (made, met)
        if one is other or {one, other} <= {Sort.REFERENCE, Sort.GUID} or {one, other} <= {Sort.ENUM, Sort.STRING}:
            return left, right
        raise mismatch(position, Phrase("{0} cannot be compared with {1}", left.type, right.type))

    @staticmethod
    def _unify_custom(left: Bound, right: Bound, position: int) -> tuple[Bound, Bound]:
        custom, value = (left, right) if left.type.sort is Sort.CUSTOM else (right, left)
        made: Bound = replace(custom, type=STRING)
        if value.type.sort is Sort.NUMBER:
            made = Call(REAL, True, "text_to_number", (made,))
        elif value.type.sort is Sort.DATE:
            made = Call(value.type, True, "text_to_date", (made,))
        elif value.type.sort is not Sort.STRING:
            raise mismatch(position, Phrase("a custom property cannot be compared with {0}", value.type))
        return (made, value) if custom is left else (value, made)

    # --- arithmetic -----------------------------------------------------------------------------------------------

    def arithmetic(self, node: ast.Arithmetic, scope: Scope) -> Bound:
        left, right = self.scalar(node.left, scope), self.scalar(node.right, scope)
        sorts = {left.type.sort, right.type.sort}
        if sorts & {Sort.DATE, Sort.DATETIME, Sort.DURATION, Sort.TIME}:
            return bind_temporal_arithmetic(node.operator, left, right, node.position)
        left, right = self._number(left, node.left.position), self._number(right, node.right.position)
        nullable = left.nullable or right.nullable or node.operator in ("div", "divby", "mod")
        return Call(_arithmetic_type(node.operator, left.type, right.type), nullable, node.operator, (left, right))

    def negate(self, node: ast.Negate, scope: Scope) -> Bound:
        operand = self.scalar(node.operand, scope)
        if operand.type.sort is Sort.DURATION:
            return call("negate", operand.type, operand)
        operand = self._number(operand, node.position)
        return call("negate", operand.type, operand)

    @staticmethod
    def _number(value: Bound, position: int) -> Bound:
        if value.type.sort is Sort.NULL:
            return _null_as(value, INTEGER)
        if isinstance(value, CustomText):
            return Call(REAL, True, "text_to_number", (replace(value, type=STRING),))
        if value.type.sort is not Sort.NUMBER:
            raise mismatch(position, Phrase("a number is needed here, not {0}", value.type))
        return value

    # --- the rest -------------------------------------------------------------------------------------------------

    def path(self, node: ast.Path, scope: Scope) -> Bound:
        return bind_path(self, node.steps, scope, node.position)

    def function(self, node: ast.FunctionCall, scope: Scope) -> Bound:
        return bind_function(self, node, scope)

    def cast(self, node: ast.Cast, scope: Scope) -> Bound:
        return bind_cast(self, node, scope)

    def isof(self, node: ast.IsOf, scope: Scope) -> Bound:
        return bind_isof(self, node, scope)

    def refuse_object(self, node: ast.Expression, scope: Scope) -> Bound:
        raise errors.NotSupported(Phrase("JSON objects and collections outside eq, ne and in"))


def _gathered(operands: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """`a eq 1 or a eq 2 or …` as `a in (1,2,…)`: callers write thousands of them, and a list costs a tenth."""
    lists: dict[Bound, list[Bound]] = {}
    gathered: list[Bound | list[Bound]] = []
    for operand in operands:
        if not (isinstance(operand, Compare) and operand.operator == "eq" and _is_value(operand.right)):
            gathered.append(operand)
            continue
        if not isinstance(operand.left, Column):
            gathered.append(operand)
            continue
        known = lists.get(operand.left)
        if known is None:
            known = lists[operand.left] = [operand.left]
            gathered.append(known)
        known.append(operand.right)
    return tuple(
        each if isinstance(each, Bound) else Member(BOOL, False, each[0], tuple(each[1:])) for each in gathered
    )


def _is_value(bound: Bound) -> bool:
    """Whether it is a value of the query itself, and not null."""
    return isinstance(bound, Input) and (
        isinstance(bound.origin, FromSlot) or (isinstance(bound.origin, Fixed) and bound.origin.value is not None)
    )


def _retypable(value: Bound) -> bool:
    return isinstance(value, Input) and value.literal is not None


def _null_as(value: Bound, target: ValueType) -> Bound:
    return replace(value, type=target) if value.type.sort is Sort.NULL else value


def _as_datetime(value: Bound) -> Bound:
    return call("date_to_datetime", DATETIME, value) if value.type.sort is Sort.DATE else value


def by_number(value: Bound) -> Bound:
    """An enum value for ordering. Inputs become the number itself; columns hold names and are translated."""
    enum = value.type.enum
    assert enum is not None
    if isinstance(value, Input):
        convert, members = value.convert, enum.members

        def number(raw: Any) -> Any:
            member = convert(raw)
            return None if member is None else members[member]

        return replace(value, type=INTEGER, convert=number, literal=None)
    return Call(INTEGER, value.nullable, "enum_number", (value,))


def _enum_type(type_name: str, position: int) -> ValueType:
    wanted = type_name.removeprefix("Erp.").lower()
    for enum in EnumType.registry.values():
        if enum.edm_name.lower() == wanted:
            return STATE if enum is STATE.enum else ValueType(Sort.ENUM, enum=enum)
    raise mismatch(position, Phrase("there is no enumeration type {0}", type_name))


def _scale_of(value: Any) -> int | None:
    """Decimal places of a literal; of a lifted one, whose value is not known yet, as many as attributes have."""
    if value is None:
        return SLOT_SCALE
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) and exponent >= -_LITERAL_SCALE_MAX else None


def _arithmetic_type(operator: str, left: ValueType, right: ValueType) -> ValueType:
    both_integer = left.integer and right.integer
    if operator == "divby" or (operator == "div" and not both_integer):
        return REAL
    if both_integer:
        return INTEGER
    if left.scale is None or right.scale is None:
        return REAL
    scale = left.scale + right.scale if operator == "mul" else max(left.scale, right.scale)
    return decimal_type(scale) if scale <= _SCALE_MAX else REAL


def _number_result(types: list[ValueType]) -> ValueType:
    if all(each.integer for each in types):
        return INTEGER
    scales = [each.scale for each in types]
    known = [scale for scale in scales if scale is not None]
    return decimal_type(max(known)) if len(known) == len(scales) else REAL


def _as_is(value: Any) -> Any:
    return value


_VISITORS: Mapping[type[ast.Expression], Callable[[Binder, Any, Scope], Bound]] = {
    ast.Literal: Binder.literal,
    ast.Slot: Binder.slot,
    ast.ParameterAlias: Binder.alias,
    ast.Path: Binder.path,
    ast.Logical: Binder.logical,
    ast.Not: Binder.negation,
    ast.Negate: Binder.negate,
    ast.Comparison: Binder.comparison,
    ast.Membership: Binder.membership,
    ast.Has: Binder.has,
    ast.Arithmetic: Binder.arithmetic,
    ast.FunctionCall: Binder.function,
    ast.Case: Binder.case,
    ast.Cast: Binder.cast,
    ast.IsOf: Binder.isof,
    ast.CollectionExpression: Binder.refuse_object,
    ast.ObjectExpression: Binder.refuse_object,
}

__all__ = ["CUSTOM", "GUID", "Binder", "Source", "repositories"]
