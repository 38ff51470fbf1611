"""The binder: turns the syntax tree into the bound tree, against the registry (OData 4.01 Part 2, 5.1.1).

Binding precedes planning, so an unknown name or a wrong type is a 400 with its position and never a join. Paths are
bound in `paths`, functions in `functions`, multilanguage texts in `texts`; `type_rules` has the types of operands and
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from domain.model.attributes import Child
from domain.model.calculated_attributes import Definition, definition
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.access import CALL_VALUES, VARIABLE_PREFIX, Access
from domain.query.base.bound import (
    BOOL,
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
    unchanged,
)
from domain.query.base.scope import Scope
from domain.query.bind import literals
from domain.query.bind.calculations import Calculation, Value
from domain.query.bind.expression_binder import OwnedRows, mismatch, retype
from domain.query.bind.functions import bind_cast, bind_function, bind_isof, bind_temporal_arithmetic
from domain.query.bind.paths import bind_in_collection, bind_object_comparison, bind_path, member_of, rows_of
from domain.query.bind.texts import as_scalar, compare_texts, texts_membership
from domain.query.bind.type_rules import (
    arithmetic_type,
    by_number,
    in_order_of_numbers,
    literal_scale,
    null_as,
    number_result,
    unify,
)
from domain.syntax import ast
from domain.syntax.ast import LiteralKind
from foundation import errors
from foundation.enums import enum_types
from foundation.messages import TranslatableMessage as Message

_THIS_EXPRESSION = Message("this expression")
_ORDERED = frozenset(
    {Sort.STRING, Sort.NUMBER, Sort.DATE, Sort.DATETIME, Sort.TIME, Sort.DURATION, Sort.ENUM, Sort.STATE, Sort.GUID}
)


#: Maximum of nodes in all expressions of a query, after replacing aliases and computed names. The text has at most
#: 50,000.
MAX_PARTS = 60_000
#: Number of nodes that each use of a calculated attribute counts for.
PARTS_OF_CALCULATION = 100


class Binder:
    """Binds the expressions of one query."""

    def __init__(
        self,
        access: Access,
        aliases: Mapping[str, ast.Expression] | None = None,
        *,
        pending: Sequence[Definition] = (),
    ) -> None:
        """pending: unsaved definitions of calculated attributes, which replace the stored ones of the same name."""
        self.access = access
        self._pending = pending
        self._calculating: list[tuple[str, str]] = []
        self.aliases = aliases or {}
        self._resolving: list[str] = []
        self._parts = 0
        #: id of a computed value → (the value, the number of its nodes)
        self._computed: dict[int, tuple[Bound, int]] = {}

    # --- entries --------------------------------------------------------------------------------------------------

    def value(self, expression: ast.Expression, scope: Scope) -> Bound:
        """Bind any expression. A literal keeps its natural type until another operand decides it."""
        self._count(1)
        return _VISITORS[type(expression)](self, expression, scope)

    def scalar(self, expression: ast.Expression, scope: Scope) -> Bound:
        """As `value`, with a multilanguage value replaced by its text in the caller's language."""
        return as_scalar(self.value(expression, scope))

    def compute(self, items: Sequence[ast.ComputeItem], scope: Scope) -> Scope:
        """The scope after $compute; later items may use earlier ones. Raises BadRequest for a name that is not new."""
        repository = scope.this.repository if scope.this is not None else None
        for item in items:
            if item.alias in scope.computed or (repository is not None and repository.attribute(item.alias)):
                raise errors.BadRequest(
                    errors.BAD_QUERY_OPTION, "$compute", Message("{0} is a property already", item.alias)
                )
            before = self._parts
            bound = self.scalar(item.expression, scope)
            self._computed[id(bound)] = bound, self._parts - before
            scope = scope.with_computed({item.alias: bound})
        return scope

    def use(self, computed: Bound) -> Bound:
        """The value of a computed name. Its nodes count at each use, because chains of names grow exponentially."""
        _, parts = self._computed.get(id(computed), (computed, 1))
        self._count(parts)
        return computed

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > MAX_PARTS:
            raise errors.BadRequest(
                errors.QUERY_TOO_LARGE,
                Message("names and aliases written out, it has more than {0} parts", MAX_PARTS),
            )

    def predicate(self, expression: ast.Expression, scope: Scope) -> Bound:
        """A boolean expression."""
        bound = self.value(expression, scope)
        if bound.type.sort is Sort.NULL:
            return replace(bound, type=BOOL)
        if bound.type.sort is not Sort.BOOL:
            raise mismatch(expression.position, Message("a condition is needed here, not {0}", bound.type))
        return bound

    # --- members --------------------------------------------------------------------------------------------------

    def member(self, source: Source, name: str) -> Any:
        """A property or collection of a row by its name in any case; None if unknown."""
        return member_of(self, source, name)

    def rows(self, source: Source, child: Child) -> OwnedRows:
        """The rows of an owned collection that the caller may see."""
        return rows_of(self, source, child)

    def calculated(self, source: Source, name: str) -> Value | None:
        """A calculated attribute of a row, by its API name, or by its bare name if no other member has that name."""
        definition = self._definition(source.repository, name)
        if definition is None:
            return None
        key = (definition.repository, definition.name)
        if key in self._calculating:
            chain = " → ".join([*(each for _, each in self._calculating), definition.name])
            Calculation(self, definition).refuse(
                definition.start, Message("attributes refer to each other: {0}", chain)
            )
        self._calculating.append(key)
        try:
            result = Calculation(self, definition).result(source)
        finally:
            self._calculating.pop()
        self._count(PARTS_OF_CALCULATION)
        return result

    def _definition(self, repository: Repository[Any], name: str) -> Definition | None:
        for each in self._pending:
            if name.lower() in (each.api_name.lower(), each.name.lower()):
                declared = repositories[each.repository]
                if issubclass(repository.model, declared.model):
                    return each
        return definition(repository, name)

    # --- literals -------------------------------------------------------------------------------------------------

    def literal(self, node: ast.Literal, scope: Scope) -> Bound:
        return self._input(Fixed(node.value), node.kind, node.type_name, node.position, node.value)

    def slot(self, node: ast.Slot, scope: Scope) -> Bound:
        return self._input(FromSlot(node.index), node.kind, node.type_name, node.position, None)

    def _input(self, origin: Fixed | FromSlot, kind: LiteralKind, type_name: str, position: int, value: Any) -> Input:
        if kind is LiteralKind.NULL:
            return Input(NULL, True, Fixed(None), unchanged, kind, position)
        if kind is LiteralKind.ENUM:
            value_type = _enum_type(type_name, position)
        elif kind in literals.NATURAL:
            sort = literals.NATURAL[kind]
            value_type = INTEGER if kind is LiteralKind.INTEGER else ValueType(sort)
            if kind is LiteralKind.DECIMAL:
                value_type = decimal_type(literal_scale(value))
        else:
            raise errors.NotSupported(Message("{0} literals", kind.value))
        result = Input(value_type, False, origin, unchanged, kind, position)
        return retype(result, value_type, _THIS_EXPRESSION)

    def alias(self, node: ast.ParameterAlias, scope: Scope) -> Bound:
        if node.name.startswith(VARIABLE_PREFIX):
            return self._call_variable(node)
        if node.name not in self.aliases:
            # 5.1.1.15: an alias without a value is null.
            return Input(NULL, True, Fixed(None), unchanged, LiteralKind.NULL, node.position)
        bound: Bound = self.resolving(node.name, lambda expression: self.value(expression, scope))
        return bound

    @contextmanager
    def with_aliases(self, *nested: ast.AliasValue) -> Iterator[None]:
        """Inside, options of $expand are bound: their aliases hide outer ones of the same name (Protocol, 12.2.3)."""
        outer = self.aliases
        self.aliases = {**outer, **{alias.name: alias.value for alias in nested}}
        try:
            yield
        finally:
            self.aliases = outer

    def resolving(self, name: str, use: Callable[[ast.Expression], Any]) -> Any:
        """Call `use` with the alias's expression; a cyclic alias is refused."""
        if name in self._resolving:
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, f"@{name}", Message("the alias refers to itself"))
        self._resolving.append(name)
        try:
            return use(self.aliases[name])
        finally:
            self._resolving.pop()

    def alias_expression(self, expression: ast.Expression) -> ast.Expression:
        """The expression of an alias, resolved through further aliases; any other expression unchanged."""
        for _ in range(20):
            if not isinstance(expression, ast.ParameterAlias) or expression.name not in self.aliases:
                return expression
            expression = self.aliases[expression.name]
        raise errors.BadRequest(errors.BAD_QUERY_OPTION, "@", Message("an alias refers to itself"))

    @staticmethod
    def _call_variable(node: ast.ParameterAlias) -> Bound:
        name = node.name.removeprefix(VARIABLE_PREFIX).replace("__", ".").lower()
        if name not in CALL_VALUES:
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name.rpartition(".")[2], f"${name.partition('.')[0]}")
        if name == "user.isadmin":
            return Input(BOOL, False, FromCall(name), unchanged, None, node.position)
        return Input(STRING, True, FromCall(name), unchanged, LiteralKind.STRING, node.position)

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
        # Double negation cancels out, for null as well.
        return operand.operand if isinstance(operand, Negation) else Negation(BOOL, operand.nullable, operand)

    def case(self, node: ast.Case, scope: Scope) -> Bound:
        conditions = [self.predicate(branch.condition, scope) for branch in node.branches]
        values = [self.scalar(branch.value, scope) for branch in node.branches]
        # Beside a date-time, dates are date-times; else the first value decides the type.
        typed = [value for value in values if value.type.sort is not Sort.NULL] or values
        chosen = next((value for value in typed if value.type.sort is Sort.DATETIME), typed[0])
        unified = [unify(value, chosen, node.position)[0] for value in values]
        result = chosen.type
        if result.sort is Sort.NUMBER:
            result = number_result([value.type for value in unified])
        return Choice(result, True, tuple(zip(conditions, unified, strict=True)))

    # --- comparison -----------------------------------------------------------------------------------------------

    def comparison(self, node: ast.Comparison, scope: Scope) -> Bound:
        if isinstance(node.right, ast.ObjectExpression):
            return bind_object_comparison(self, node, scope)
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        return self.compare(node.operator, left, right, node.position)

    def compare(self, operator: Any, left: Bound, right: Bound, position: int) -> Bound:
        """Compare two bound values; multilanguage texts compare by any of their texts (see texts)."""
        if Sort.TEXTS in (left.type.sort, right.type.sort):
            return compare_texts(self, operator, left, right, position)
        if operator not in ("eq", "ne"):
            left, right = in_order_of_numbers(left, right), in_order_of_numbers(right, left)
        left, right = unify(left, right, position)
        sorts = {left.type.sort, right.type.sort}
        if operator not in ("eq", "ne") and sorts == {Sort.ENUM, Sort.STRING}:
            # Enumerations are ordered by number, which a text does not have.
            raise mismatch(position, Message("{0} cannot be compared with {1}", left.type, right.type))
        if operator not in ("eq", "ne") and left.type.sort not in _ORDERED and left.type.sort is not Sort.NULL:
            raise mismatch(position, Message("{0} has no order; use eq or ne", left.type))
        if operator not in ("eq", "ne") and left.type.sort is Sort.ENUM:
            left, right = by_number(left), by_number(right)
        return Compare(BOOL, False, operator, left, right)

    def membership(self, node: ast.Membership, scope: Scope) -> Bound:
        collection = self.alias_expression(node.collection)
        if isinstance(collection, ast.CollectionExpression):
            listed = collection.items
        elif collection is not node.collection:
            # `@p=('x')` parses as an expression in parentheses; after `in` it is a list of one.
            listed = (collection,)
        elif isinstance(collection, ast.Path):
            return bind_in_collection(self, node, collection, scope)
        else:
            raise mismatch(node.position, Message("behind in stands a list or a path over a collection"))
        operand = self.value(node.operand, scope)
        items = [self.value(item, scope) for item in listed]
        if operand.type.sort is Sort.TEXTS:
            return texts_membership(self, operand, items, node.position)
        if not items:
            return Member(BOOL, False, operand, ())
        pairs = [unify(operand, item, node.position) for item in items]
        if any(left is not pairs[0][0] for left, _ in pairs):
            # Items of different types, such as dates and date-times, are compared separately.
            return any_of(*(Compare(BOOL, False, "eq", left, right) for left, right in pairs))
        return Member(BOOL, False, pairs[0][0], tuple(right for _, right in pairs))

    def has(self, node: ast.Has, scope: Scope) -> Bound:
        operand = self.value(node.operand, scope)
        if operand.type.sort not in (Sort.ENUM, Sort.STATE):
            raise mismatch(node.position, Message("has needs an enumeration before it"))
        return self.compare("eq", operand, self.value(node.flags, scope), node.position)

    # --- arithmetic -----------------------------------------------------------------------------------------------

    def arithmetic(self, node: ast.Arithmetic, scope: Scope) -> Bound:
        left, right = self.scalar(node.left, scope), self.scalar(node.right, scope)
        sorts = {left.type.sort, right.type.sort}
        if sorts & {Sort.DATE, Sort.DATETIME, Sort.DURATION, Sort.TIME}:
            return bind_temporal_arithmetic(node.operator, left, right, node.position)
        left, right = self._number(left, node.left.position), self._number(right, node.right.position)
        nullable = left.nullable or right.nullable or node.operator in ("div", "divby", "mod")
        return Call(arithmetic_type(node.operator, left.type, right.type), nullable, node.operator, (left, right))

    def negate(self, node: ast.Negate, scope: Scope) -> Bound:
        operand = self.scalar(node.operand, scope)
        if operand.type.sort is Sort.DURATION:
            return call("negate", operand.type, operand)
        operand = self._number(operand, node.position)
        return call("negate", operand.type, operand)

    @staticmethod
    def _number(value: Bound, position: int) -> Bound:
        if value.type.sort is Sort.NULL:
            return null_as(value, INTEGER)
        if isinstance(value, CustomText):
            return Call(REAL, True, "text_to_number", (replace(value, type=STRING),))
        if value.type.sort is not Sort.NUMBER:
            raise mismatch(position, Message("a number is needed here, not {0}", value.type))
        return value

    def refuse_object(self, node: ast.Expression, scope: Scope) -> Bound:
        raise errors.NotSupported(Message("JSON objects and collections outside eq, ne and in"))


def _gathered(operands: tuple[Bound, ...]) -> tuple[Bound, ...]:
    """Rewrite `a eq 1 or a eq 2 or …` as `a in (1,2,…)`: callers send thousands of them, and a list costs a tenth."""
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
    """Whether the expression is a literal other than null."""
    return isinstance(bound, Input) and (
        isinstance(bound.origin, FromSlot) or (isinstance(bound.origin, Fixed) and bound.origin.value is not None)
    )


def _enum_type(type_name: str, position: int) -> ValueType:
    wanted = type_name.lower().removeprefix("erp.").removeprefix("self.")
    for enum in enum_types:
        if enum.edm_name.lower() == wanted:
            return STATE if enum is STATE.enum else ValueType(Sort.ENUM, enum=enum)
    raise mismatch(position, Message("there is no enumeration type {0}", type_name))


_VISITORS: Mapping[type[ast.Expression], Callable[[Binder, Any, Scope], Bound]] = {
    ast.Literal: Binder.literal,
    ast.Slot: Binder.slot,
    ast.ParameterAlias: Binder.alias,
    ast.Path: lambda binder, node, scope: bind_path(binder, node.steps, scope, node.position),
    ast.Logical: Binder.logical,
    ast.Not: Binder.negation,
    ast.Negate: Binder.negate,
    ast.Comparison: Binder.comparison,
    ast.Membership: Binder.membership,
    ast.Has: Binder.has,
    ast.Arithmetic: Binder.arithmetic,
    ast.FunctionCall: bind_function,
    ast.Case: Binder.case,
    ast.Cast: bind_cast,
    ast.IsOf: bind_isof,
    ast.CollectionExpression: Binder.refuse_object,
    ast.ObjectExpression: Binder.refuse_object,
}
