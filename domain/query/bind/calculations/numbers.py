"""Operators on numbers: ADD MULTIPLY DIVIDE ROUND CEILING FLOOR."""

from __future__ import annotations

from typing import ClassVar

from django.utils.translation import gettext_noop as _

from domain.query.base.bound import BOOL, INTEGER, REAL, Call, Compare, call, decimal_type, fixed
from domain.query.bind.calculations.operators import Operator, operators
from domain.query.bind.calculations.place import Place
from domain.query.bind.calculations.terms import Term, Value
from domain.query.bind.type_rules import arithmetic_type

#: Maximum of decimal places that ROUND gives.
MAX_PLACES = 12


class _Arithmetic(Operator):
    arity = 2, 2
    function: ClassVar[str]

    def bind(self, at: Place) -> Term:
        left, right = at.number(0), at.number(1)
        value_type = arithmetic_type(self.function, left.bound.type, right.bound.type)
        result = call(self.function, value_type, left.bound, right.bound)
        return Value(result).with_failures(*left.failures, *right.failures)


@operators.register
class Add(_Arithmetic):
    """ADD(number, number)."""

    name = "ADD"
    parameters = (_("number"), _("number"))
    function = "add"


@operators.register
class Multiply(_Arithmetic):
    """MULTIPLY(number, number)."""

    name = "MULTIPLY"
    parameters = (_("number"), _("number"))
    function = "mul"


@operators.register
class Divide(Operator):
    """DIVIDE(number, by): a fraction; division by zero fails."""

    name = "DIVIDE"
    arity = 2, 2
    parameters = (_("number"), _("by"))

    def bind(self, at: Place) -> Term:
        left, right = at.number(0), at.number(1)
        zero = Compare(BOOL, False, "eq", right.bound, fixed(0, INTEGER))
        result = Call(REAL, True, "divby", (left.bound, right.bound))
        return Value(result).with_failures(*left.failures, *right.failures, (at.row.number, zero))


@operators.register
class Round(Operator):
    """ROUND(number, places=0): half away from zero; the places are a constant."""

    name = "ROUND"
    arity = 1, 2
    parameters = (_("number"), _("places"))

    def bind(self, at: Place) -> Term:
        number = at.number(0)
        places = at.integer(1, 0, MAX_PLACES) if at.count > 1 else 0
        scale = number.bound.type.scale
        if number.bound.type.integer or (scale is not None and scale <= places):
            return number
        rounded = call("round_to", decimal_type(places), number.bound)
        return Value(rounded).with_failures(*number.failures)


class _Whole(Operator):
    arity = 1, 1
    function: ClassVar[str]

    def bind(self, at: Place) -> Term:
        number = at.number(0)
        if number.bound.type.integer:
            return number
        return Value(call(self.function, decimal_type(0), number.bound)).with_failures(*number.failures)


@operators.register
class Ceiling(_Whole):
    """CEILING(number): the least whole number that is not less."""

    name = "CEILING"
    parameters = (_("number"),)
    function = "ceiling"


@operators.register
class Floor(_Whole):
    """FLOOR(number): the greatest whole number that is not greater."""

    name = "FLOOR"
    parameters = (_("number"),)
    function = "floor"
