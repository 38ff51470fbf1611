"""Operators of comparison and logic: EQUAL GT GTE LT LTE AND OR NOT IIF IFERROR IN LIKE REGEX."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

from django.utils.translation import gettext_noop as _

from domain.query.base.bound import (
    BOOL,
    FALSE,
    INTEGER,
    STRING,
    TRUE,
    Bound,
    Choice,
    Column,
    Compare,
    ListValue,
    Logic,
    Sort,
    all_of,
    any_of,
    call,
    fixed,
)
from domain.query.base.regex import check_text
from domain.query.bind.calculations.operators import Operator, operators
from domain.query.bind.calculations.place import Place, as_text
from domain.query.bind.calculations.terms import Term, Value, is_not_null, is_null, negated
from domain.query.bind.texts import as_scalar
from domain.query.bind.type_rules import number_result, unify
from domain.syntax.ast import LiteralKind
from foundation import errors
from foundation.messages import TranslatableMessage as Message


def compared(at: Place, operator: Any, left: Bound, right: Bound) -> Bound:
    """A comparison that is false for null, except that EQUAL tests a constant NULL."""
    for one, other in ((left, right), (right, left)):
        if one.type.sort is Sort.NULL:
            return is_null(other) if operator == "eq" else FALSE
    try:
        result = at.calculation.binder.compare(operator, left, right, 0)
    except errors.BadRequest as exc:
        at.refuse_as(exc)
    if left.nullable and right.nullable and operator in ("eq", "ge", "le"):
        result = all_of(is_not_null(left), result) or result
    return result


class _Comparison(Operator):
    arity = 2, 2
    operator: ClassVar[Literal["eq", "gt", "ge", "lt", "le"]]

    def bind(self, at: Place) -> Term:
        left, right = at.value(0), at.value(1)
        result = compared(at, self.operator, left.bound, right.bound)
        return Value(result).with_failures(*left.failures, *right.failures)


@operators.register
class Equal(_Comparison):
    """EQUAL(value, value); EQUAL(value, NULL) tests for null."""

    name = "EQUAL"
    parameters = (_("value"), _("compared with"))
    operator = "eq"


@operators.register
class Gt(_Comparison):
    """GT(value, value)."""

    name = "GT"
    parameters = (_("value"), _("compared with"))
    operator = "gt"


@operators.register
class Gte(_Comparison):
    """GTE(value, value)."""

    name = "GTE"
    parameters = (_("value"), _("compared with"))
    operator = "ge"


@operators.register
class Lt(_Comparison):
    """LT(value, value)."""

    name = "LT"
    parameters = (_("value"), _("compared with"))
    operator = "lt"


@operators.register
class Lte(_Comparison):
    """LTE(value, value)."""

    name = "LTE"
    parameters = (_("value"), _("compared with"))
    operator = "le"


class _Logic(Operator):
    arity = 2, 3
    operator: ClassVar[Literal["and", "or"]]

    def bind(self, at: Place) -> Term:
        operands = [at.condition(index) for index in range(at.count)]
        bounds = tuple(each.bound for each in operands)
        result = Logic(BOOL, any(each.nullable for each in bounds), self.operator, bounds)
        return Value(result).with_failures(*(failure for each in operands for failure in each.failures))


@operators.register
class And(_Logic):
    """AND(condition, condition, condition?)."""

    name = "AND"
    parameters = (_("condition"), _("condition"), _("condition"))
    operator = "and"


@operators.register
class Or(_Logic):
    """OR(condition, condition, condition?)."""

    name = "OR"
    parameters = (_("condition"), _("condition"), _("condition"))
    operator = "or"


@operators.register
class Not(Operator):
    """NOT(condition)."""

    name = "NOT"
    arity = 1, 1
    parameters = (_("condition"),)

    def bind(self, at: Place) -> Term:
        operand = at.condition(0)
        return replace(operand, bound=negated(operand.bound))


def one_type(at: Place, values: list[Bound]) -> list[Bound]:
    """The alternatives of IIF and IFERROR, converted to one type."""
    scalars = [as_scalar(value) for value in values]
    first, *rest = scalars
    sorts = {value.type.sort for value in scalars} - {Sort.NULL}
    if len(sorts) > 1 and sorts <= {Sort.STRING, Sort.ENUM, Sort.STATE, Sort.GUID}:
        scalars = [as_text(at.calculation.binder, value) for value in scalars]
        first, *rest = scalars
    result = [first]
    for value in rest:
        try:
            one, other = unify(result[0], value, 0)
        except errors.BadRequest as exc:
            at.refuse_as(exc)
        # A date beside a date-time, or null beside anything, becomes the other's type.
        result = [one if each is result[0] else each for each in result] + [other]
    return result


def choice(branches: list[tuple[Bound, Bound]]) -> Bound:
    """The value of the first condition that is true."""
    values = [value for _, value in branches]
    value_type = values[0].type
    if value_type.sort is Sort.NUMBER:
        value_type = number_result([value.type for value in values])
    return Choice(value_type, any(value.nullable for value in values), tuple(branches))


@operators.register
class Iif(Operator):
    """IIF(condition, then, else): `else` if the condition is false or null."""

    name = "IIF"
    arity = 3, 3
    parameters = (_("condition"), _("then"), _("else"))

    def bind(self, at: Place) -> Term:
        condition, then, otherwise = at.condition(0), at.value(1), at.value(2)
        one, other = one_type(at, [then.bound, otherwise.bound])
        if one.type.sort is Sort.NULL:
            return Value(one).with_failures(*condition.failures)
        result = choice([(condition.bound, one), (TRUE, other)])
        is_not = Choice(BOOL, False, ((condition.bound, FALSE), (TRUE, TRUE)))
        return Value(result).with_failures(
            *condition.failures, *then.only_if(condition.bound), *otherwise.only_if(is_not)
        )


@operators.register
class IfError(Operator):
    """IFERROR(value, instead): `instead` if the evaluation of `value` fails."""

    name = "IFERROR"
    arity = 2, 2
    parameters = (_("value"), _("instead"))

    def bind(self, at: Place) -> Term:
        value, instead = at.value(0), at.value(1)
        if not value.failures:
            return value
        one, other = one_type(at, [value.bound, instead.bound])
        return Value(choice([(value.failed, other), (TRUE, one)])).with_failures(*instead.only_if(value.failed))


@operators.register
class In(Operator):
    """IN(value, list): constants, or entities for the guid of an entity."""

    name = "IN"
    arity = 2, 2
    parameters = (_("value"), _("list"))

    def bind(self, at: Place) -> Term:
        value = at.value(0)
        listed = at.constant_list(1)
        if listed is None:
            return self._among_rows(at, value)
        alternatives = [compared(at, "eq", value.bound, each) for each in listed]
        return replace(value, bound=any_of(*alternatives))

    @staticmethod
    def _among_rows(at: Place, value: Value) -> Term:
        rows = at.rows(1)
        source = rows.variable
        key = Column(value.bound.type, False, source, source.repository.id)
        if value.bound.type.sort not in (Sort.GUID, Sort.REFERENCE):
            at.refuse(Message("entities can be compared with the guid of an entity only"))
        same = Compare(BOOL, False, "eq", key, value.bound)
        found = Choice(INTEGER, False, ((same, fixed(1, INTEGER)), (TRUE, fixed(0, INTEGER))))
        number = ListValue(INTEGER, False, "sum", rows, found)
        return replace(value, bound=Compare(BOOL, False, "gt", number, fixed(0, INTEGER)))


def constant_text(at: Place, index: int) -> str:
    """A parameter that is a constant text."""
    literal = at.literal(index)
    return str(literal.value) if literal.kind is not LiteralKind.NULL else ""


@operators.register
class Like(Operator):
    """LIKE(text, mask): % stands for any text and _ for one character, in any case; the mask is a constant."""

    name = "LIKE"
    arity = 2, 2
    parameters = (_("text"), _("mask"))

    def bind(self, at: Place) -> Term:
        text, mask = at.text(0), constant_text(at, 1)
        matched = call("like", BOOL, text.bound, fixed(mask.lower(), STRING))
        return Value(_or_false(matched)).with_failures(*text.failures)


@operators.register
class Regex(Operator):
    """REGEX(text, pattern): some part of the text matches the pattern, a constant that is matched in linear time."""

    name = "REGEX"
    arity = 2, 2
    parameters = (_("text"), _("pattern"))

    def bind(self, at: Place) -> Term:
        text, pattern = at.text(0), constant_text(at, 1)
        try:
            check_text(pattern, 0)
        except errors.BadRequest as exc:
            at.refuse_as(exc)
        matched = call("matchesPattern", BOOL, text.bound, fixed(pattern, STRING))
        return Value(_or_false(matched)).with_failures(*text.failures)


def _or_false(condition: Bound) -> Bound:
    """A comparison of text: false for null."""
    return call("is_true", BOOL, condition) if condition.nullable else condition
