"""Conversion operators: CAST and CONVERT. A value that cannot be converted fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from django.utils.translation import gettext_noop as _

from domain.query.base.bound import (
    BOOL,
    DATE,
    DATETIME,
    FALSE,
    GUID,
    INTEGER,
    REAL,
    STATE,
    STRING,
    TRUE,
    Bound,
    Call,
    Choice,
    Compare,
    Sort,
    ValueType,
    all_of,
    call,
    decimal_type,
    fixed,
)
from domain.query.bind.calculations.operators import Operator, operators
from domain.query.bind.calculations.place import Place, as_text
from domain.query.bind.calculations.terms import Term, Value, is_not_null, is_null
from domain.query.bind.texts import as_scalar
from domain.query.bind.type_rules import as_datetime, by_number
from domain.syntax.ast import LiteralKind
from foundation.enums import EnumType, enum_types
from foundation.messages import TranslatableMessage as Message

_TYPES = (
    "System.Int32, System.Decimal, System.Double, System.String, System.DateTime, System.Guid, System.Boolean,"
    " an enumeration"
)
_INT_LIMIT = fixed(2**31 - 1, INTEGER)
_INT_LEAST = fixed(-(2**31), INTEGER)


class _Conversion(Operator):
    arity = 2, 2
    #: Name of the function that rounds a fraction to an integer.
    whole: ClassVar[str]

    def bind(self, at: Place) -> Term:
        value = at.value(0)
        literal = at.literal(1)
        name = str(literal.value).strip() if literal.kind is LiteralKind.STRING else ""
        convert = _CONVERSIONS.get(name.lower().removeprefix("system."))
        source = as_scalar(value.bound)
        if convert is not None:
            result = convert(self, at, source)
        elif (enum := _enum(name)) is not None:
            result = _to_enum(enum, at, source)
        else:
            at.refuse(Message("there is no type {0}; possible are: {1}", name or str(at.row.parameters[1]), _TYPES))
        if result is None:
            at.refuse(Message("{0} cannot be converted to {1}", source.type, name))
        if not result.nullable or result is source:
            return Value(result).with_failures(*value.failures)
        failed = all_of(is_not_null(source), is_null(result)) or is_null(result)
        failures = () if _always(source, result) else ((at.row.number, failed),)
        return Value(result).with_failures(*value.failures, *failures)


@operators.register
class Cast(_Conversion):
    """CAST(value, type): truncates fractions."""

    name = "CAST"
    parameters = (_("value"), _("type"))
    whole = "truncate"


@operators.register
class Convert(_Conversion):
    """CONVERT(value, type): rounds fractions half away from zero."""

    name = "CONVERT"
    parameters = (_("value"), _("type"))
    whole = "round"


def _always(source: Bound, result: Bound) -> bool:
    """Whether every value can be converted."""
    total = ("to_text", "date", "date_to_datetime")
    return isinstance(result, Call) and result.name in total and result.arguments[0] is source


def _number(source: Bound) -> Bound | None:
    """A value as a number."""
    match source.type.sort:
        case Sort.NULL:
            return fixed(None, INTEGER)
        case Sort.NUMBER:
            return source
        case Sort.BOOL:
            branches = ((source, fixed(1, INTEGER)), (Compare(BOOL, False, "eq", source, FALSE), fixed(0, INTEGER)))
            return Choice(INTEGER, source.nullable, branches)
        case Sort.ENUM:
            return by_number(source)
        case Sort.STATE:
            return Call(INTEGER, source.nullable, "state_number", (source,))
        case Sort.STRING:
            return Call(REAL, True, "text_to_number", (source,))
    return None


def _to_integer(operator: _Conversion, at: Place, source: Bound) -> Bound | None:
    number = _number(source)
    if number is None or number.type.integer:
        return number
    whole = Call(INTEGER, number.nullable, operator.whole, (number,))
    within = all_of(Compare(BOOL, False, "ge", number, _INT_LEAST), Compare(BOOL, False, "le", number, _INT_LIMIT))
    assert within is not None
    return Choice(INTEGER, True, ((within, whole),))


def _to_decimal(operator: _Conversion, at: Place, source: Bound) -> Bound | None:
    number = _number(source)
    if number is not None and number.type.integer and number.type.sort is Sort.NUMBER and number is not source:
        return call("add", decimal_type(0), number, fixed(0, decimal_type(0)))
    return number


def _to_string(operator: _Conversion, at: Place, source: Bound) -> Bound | None:
    return as_text(at.calculation.binder, source)


def _to_datetime(operator: _Conversion, at: Place, source: Bound) -> Bound | None:
    match source.type.sort:
        case Sort.NULL:
            return fixed(None, DATETIME)
        case Sort.DATE | Sort.DATETIME:
            return as_datetime(source)
        case Sort.STRING:
            return as_datetime(Call(DATE, True, "text_to_date", (source,)))
    return None


def _to_guid(operator: _Conversion, at: Place, source: Bound) -> Bound | None:
    match source.type.sort:
        case Sort.NULL:
            return fixed(None, GUID)
        case Sort.GUID:
            return source
        case Sort.STRING:
            return Call(GUID, True, "text_to_guid", (source,))
    return None


def _to_boolean(operator: _Conversion, at: Place, source: Bound) -> Bound | None:
    match source.type.sort:
        case Sort.NULL:
            return fixed(None, BOOL)
        case Sort.BOOL:
            return source
        case Sort.NUMBER:
            is_zero = Compare(BOOL, False, "eq", source, fixed(0, INTEGER))
            return Choice(BOOL, source.nullable, ((is_null(source), fixed(None, BOOL)), (is_zero, FALSE), (TRUE, TRUE)))
        case Sort.STRING:
            lower = call("tolower", STRING, source)
            words = (
                (Compare(BOOL, False, "eq", lower, fixed(str(word).lower(), STRING)), word) for word in (True, False)
            )
            return Choice(BOOL, True, tuple((test, TRUE if word else FALSE) for test, word in words))
    return None


_Convert = Callable[[_Conversion, Place, Bound], Bound | None]
_CONVERSIONS: Mapping[str, _Convert] = {
    "int32": _to_integer,
    "decimal": _to_decimal,
    "double": _to_decimal,
    "string": _to_string,
    "datetime": _to_datetime,
    "guid": _to_guid,
    "boolean": _to_boolean,
}


def _enum(name: str) -> EnumType | None:
    wanted = name.removeprefix("Erp.").lower()
    return next((enum for enum in enum_types if wanted in (enum.name.lower(), enum.edm_name.lower())), None)


def _to_enum(enum: EnumType, at: Place, source: Bound) -> Bound | None:
    is_state = enum is STATE.enum
    value_type = STATE if is_state else ValueType(Sort.ENUM, enum=enum)
    if source.type.sort in (Sort.ENUM, Sort.STATE) and source.type.enum is enum:
        return source
    if source.type.sort is Sort.NULL:
        return fixed(None, value_type)
    if source.type.sort is Sort.NUMBER:
        tests = [
            (Compare(BOOL, False, "eq", source, fixed(number, INTEGER)), member)
            for member, number in enum.members.items()
        ]
    elif source.type.sort is Sort.STRING:
        lower = call("tolower", STRING, source)
        tests = [(Compare(BOOL, False, "eq", lower, fixed(member.lower(), STRING)), member) for member in enum.members]
    else:
        return None
    return Choice(
        value_type,
        True,
        tuple((test, fixed(enum.members[member] if is_state else member, value_type)) for test, member in tests),
    )
