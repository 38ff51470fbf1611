"""Evaluates the `if` of a request in a JSON batch (OData JSON 4.01, 19.1).

    not $1/$succeeded or ($2/Name eq 'x' and $g/$succeeded)

A condition is a boolean expression of OData, over the success of requests that ran before and over the values in their
responses. A member that a response does not have is an error: it may have been left out, and need not be null.
"""

from __future__ import annotations

import datetime
import json
import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from domain.odata.message.json_body import invalid_body
from domain.odata.message.message import JSON
from domain.odata.service.batch.parts import Done
from domain.syntax import ODataUrlError, ast, parse_boolean_expression
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: String literals, which are skipped, and references to requests.
_REFERENCE = re.compile(r"'(?:[^']|'')*'|(?<!/)\$(?P<id>[\w.~-]+)(?P<success>/\$succeeded\b)?", re.IGNORECASE)
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le,
}  # fmt: skip


def holds(text: str, done: Mapping[str, Done]) -> bool:
    """Evaluate the condition. `done`: id or group that ran before → its response.

    Raises BadRequest for an invalid condition, an id that has not run or a value that its response does not have,
    NotSupported for other expressions.
    """
    condition = _Condition(done)
    try:
        expression = parse_boolean_expression(_REFERENCE.sub(condition.alias, text))
    except ODataUrlError as exc:
        raise invalid_body(Message("if cannot be read: '{0}'", text), target="if", info=str(exc)) from exc
    return condition.is_true(expression)


class _Condition:
    """The references of one condition, as parameter aliases, and its evaluation."""

    def __init__(self, done: Mapping[str, Done]) -> None:
        self._done = done
        self._aliases: list[tuple[str, bool]] = []
        #: Id → what `_result` read: a condition may name a large response thousands of times.
        self._results: dict[str, Any] = {}

    def alias(self, match: re.Match[str]) -> str:
        """The parameter alias for a reference, which the OData grammar lacks. Raises BadRequest for unknown ids."""
        if match["id"] is None:
            return match[0]
        if match["id"] not in self._done:
            raise invalid_body(Message("if names {0}, which did not run before", match["id"]), target="if")
        self._aliases.append((match["id"], match["success"] is not None))
        return f"@r{len(self._aliases) - 1}"

    def is_true(self, expression: ast.Expression) -> bool:
        """Evaluate a boolean expression; null is not true."""
        match expression:
            case ast.Logical(operator="and"):
                return all(map(self.is_true, expression.operands))
            case ast.Logical():
                return any(map(self.is_true, expression.operands))
            case ast.Not():
                return not self.is_true(expression.operand)
            case ast.Comparison():
                return _compare(expression.operator, self._value(expression.left), self._value(expression.right))
        value = self._value(expression)
        if not isinstance(value, bool | None):
            raise invalid_body(Message("if needs a condition"), target="if")
        return value is True

    def _value(self, expression: ast.Expression) -> Any:
        match expression:
            case ast.Literal():
                return ",".join(map(str, expression.value)) if isinstance(expression.value, tuple) else expression.value
            case ast.ParameterAlias():
                return self._referenced(expression.name, ())
            case ast.Path(steps=(ast.VariableStep(name=name), *steps)) if name.startswith("@"):
                return self._referenced(name.removeprefix("@"), steps)
        raise errors.NotSupported(Message("this expression in the condition of a batch's request"), target="if")

    def _referenced(self, alias: str, steps: Any) -> Any:
        """The success of a request, or the value of a path in its response."""
        number = alias.removeprefix("r")
        if not number.isdigit() or int(number) >= len(self._aliases):
            raise invalid_body(Message("if has no parameter aliases"), target="if")
        id, is_success = self._aliases[int(number)]
        done = self._done[id]
        if is_success and not steps:
            return not done.failed
        if done.failed or id == done.part.group:
            raise invalid_body(Message("request {0} of if has no result", id), target="if")
        if id not in self._results:
            self._results[id] = _result(done)
        value = self._results[id]
        for step in steps:
            if not isinstance(step, ast.NameStep) or step.suffixes:
                raise errors.NotSupported(Message("this path in the condition of a batch's request"), target="if")
            if value is None:
                return None
            if not isinstance(value, dict) or step.name not in value:
                raise invalid_body(Message("the response to request {0} has no '{1}'", id, step.name), target="if")
            value = value[step.name]
        return value


def _result(done: Done) -> Any:
    """The entity or value of a response; None without content."""
    if not done.response.body:
        return None
    if not done.response.headers.get("Content-Type", "").startswith(JSON):
        text = done.response.body.decode(errors="replace")
        return int(text) if text.isascii() and text.isdigit() else text
    body = json.loads(done.response.body, parse_float=Decimal)
    is_value = isinstance(body, dict) and "value" in body and all(name[0] == "@" or name == "value" for name in body)
    return body["value"] if is_value else body


def _compare(comparison: str, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return {"eq": left is right, "ne": left is not right}.get(comparison, False)
    left, right = _comparable(left, right), _comparable(right, left)
    kinds = {_kind(left), _kind(right)}
    if len(kinds) > 1 or kinds & {dict, list}:
        raise invalid_body(Message("if compares values of different types"), target="if")
    if any(isinstance(value, Decimal) and value.is_nan() for value in (left, right)):
        return comparison == "ne"  # Decimal refuses to order NaN
    return _ORDER[comparison](left, right)


def _kind(value: Any) -> type:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return Decimal if is_number else type(value)


def _comparable(value: Any, other: Any) -> Any:
    """Convert a value for comparison with `other`: JSON text beside a date-time to one, a date or time to JSON text."""
    if isinstance(other, datetime.datetime) and isinstance(value, str):
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            return value
        # A date begins in UTC, as in queries.
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    if isinstance(value, datetime.date | datetime.time) and not isinstance(value, datetime.datetime):
        return value.isoformat()
    return value
