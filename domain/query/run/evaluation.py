"""Evaluates bound expressions in Python, with the same results as both databases.

Calculated attributes need it for rows that are not stored, and for operators without SQL. Values are canonical
(foundation.kinds), except that a document state is its number. `Environment` provides the values of the leaves.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Protocol

from domain.model.attribute_scripts import ScriptResult
from domain.query.base.access import CALL_VALUES
from domain.query.base.bound import (
    AnyText,
    Bound,
    Call,
    Choice,
    Compare,
    Computed,
    Fixed,
    FromCall,
    Input,
    ListValue,
    Logic,
    Member,
    Negation,
    Rows,
    Scripted,
    ScriptFailed,
    Sort,
    TextItem,
    ValueType,
)
from domain.query.run.functions import FUNCTIONS
from domain.query.sql.reals import real_text
from foundation.enums import DOCUMENT_STATE
from identity.context import CallContext


class Environment(Protocol):
    """The rows in scope of an expression."""

    @property
    def ctx(self) -> CallContext: ...

    def leaf(self, node: Bound) -> Any:
        """The value of a column or another leaf."""
        ...

    def known(self, node: Bound) -> bool:
        """Whether `leaf` returns the value of this node, although it is not a leaf."""
        ...

    def scripted(self, node: Scripted) -> ScriptResult:
        """The result of a script for the row."""
        ...

    def items(self, rows: Rows) -> Iterable[Environment]:
        """The rows of a list, narrowed, in order and cut."""
        ...


def evaluate(node: Bound, env: Environment, item: str | None = None) -> Any:
    """The value of an expression. item: the tested text inside AnyText."""
    match node:
        case Input():
            return _input(node, env)
        case _ if env.known(node):
            return env.leaf(node)
        case TextItem():
            return item
        case Compare():
            return _compare(node, env, item)
        case Member():
            operand = _comparable(node.operand, env, item)
            return any(operand == _comparable(each, env, item) for each in node.items)
        case Logic():
            return _logic(node, env, item)
        case Negation():
            value = evaluate(node.operand, env, item)
            return None if value is None else not value
        case Choice():
            for condition, value in node.branches:
                if evaluate(condition, env, item) is True:
                    return evaluate(value, env, item)
            return None
        case AnyText():
            texts = evaluate(node.texts, env, item)
            return None if texts is None else any(evaluate(node.predicate, env, text) for text in texts.values())
        case ListValue():
            return _list_value(node, env)
        case Scripted():
            return env.scripted(node).value
        case ScriptFailed():
            return env.scripted(node.script).error != ""
        case Computed():
            values = [canonical(evaluate(each, env, item), each.type) for each in node.arguments]
            return node.compute(*values, env.ctx.language)
        case Call():
            values = [evaluate(argument, env, item) for argument in node.arguments]
            return FUNCTIONS[node.name](node, values, env.ctx)
    return env.leaf(node)


def _input(node: Input, env: Environment) -> Any:
    match node.origin:
        case Fixed(value):
            return node.convert(value)
        case FromCall(name):
            return node.convert(CALL_VALUES[name](env.ctx))
    raise LookupError("a parameterized literal has no value here")


def _comparable(node: Bound, env: Environment, item: str | None) -> Any:
    """The value in a form that Python compares as the databases do."""
    value = evaluate(node, env, item)
    if value is not None and node.type.sort is Sort.NUMBER and node.type.scale is None:
        text = real_text(value)
        return None if text is None else Decimal(text)
    return value


def _compare(node: Compare, env: Environment, item: str | None) -> bool:
    left, right = _comparable(node.left, env, item), _comparable(node.right, env, item)
    if left is None or right is None:
        both = left is None and right is None
        return not both if node.operator == "ne" else both and node.operator in ("eq", "ge", "le")
    match node.operator:
        case "eq":
            return bool(left == right)
        case "ne":
            return bool(left != right)
        case "gt":
            return bool(left > right)
        case "ge":
            return bool(left >= right)
        case "lt":
            return bool(left < right)
    return bool(left <= right)


def _logic(node: Logic, env: Environment, item: str | None) -> bool | None:
    """Three-valued and, or."""
    decisive = node.operator == "or"
    unknown = False
    for operand in node.operands:
        value = evaluate(operand, env, item)
        if value is decisive:
            return value is True
        unknown = unknown or value is None
    return None if unknown else not decisive


def _list_value(node: ListValue, env: Environment) -> Any:
    items = env.items(node.rows)
    if node.function == "count":
        return sum(1 for _ in items)
    values = (evaluate(node.value, each) for each in items)
    if node.function == "first":
        return next(iter(values), None)
    given = [value for value in values if value is not None]
    if node.function == "sum":
        return sum(given, 0)
    return node.separator.join(given) if given else None


def canonical(value: Any, value_type: ValueType) -> Any:
    """The value in its canonical form (foundation.kinds)."""
    if value is None:
        return None
    match value_type.sort:
        case Sort.STATE:
            return DOCUMENT_STATE.by_number.get(value)
        case Sort.NUMBER if value_type.integer:
            return int(value)
        case Sort.NUMBER if value_type.scale is None:
            text = real_text(value)
            return None if text is None else Decimal(text)
        case Sort.NUMBER:
            return Decimal(value)
    return value
