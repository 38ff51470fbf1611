"""Type rules of expressions: the common type of two operands, and the result types of arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.query.base.bound import (
    BOOL,
    DATE,
    DATETIME,
    INTEGER,
    REAL,
    STRING,
    Bound,
    Call,
    CustomText,
    Input,
    Sort,
    ValueType,
    call,
    decimal_type,
)
from domain.query.bind.expression_binder import mismatch, retype
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message

_THIS_COMPARISON = Message("this comparison")
_SCALE_MAX = 12
_LITERAL_SCALE_MAX = 18
#: Maximum decimal places that are assumed for a parameterized decimal literal (see cache.parameterize).
SLOT_SCALE = 6


def unify(left: Bound, right: Bound, position: int) -> tuple[Bound, Bound]:
    """Convert both sides to one type; a literal takes the type of the other side. Raises BadRequest(TYPE_MISMATCH)."""
    one, other = left.type.sort, right.type.sort
    if one is Sort.NULL or other is Sort.NULL:
        target = right.type if one is Sort.NULL else left.type
        return null_as(left, target), null_as(right, target)
    if Sort.CUSTOM in (one, other):
        return _unify_custom(left, right, position)
    if one is other and one not in (Sort.ENUM, Sort.REFERENCE):
        return left, right
    if {one, other} == {Sort.DATE, Sort.DATETIME} and not (_retypable(left) or _retypable(right)):
        return as_datetime(left), as_datetime(right)
    for literal, against in ((right, left), (left, right)):
        if isinstance(literal, Input) and _retypable(literal) and not (isinstance(against, Input) and one is other):
            met = as_datetime(against) if {one, other} == {Sort.DATE, Sort.DATETIME} else against
            result = retype(literal, met.type, _THIS_COMPARISON)
            return (met, result) if literal is right else (result, met)
    if one is other or {one, other} <= {Sort.REFERENCE, Sort.GUID} or {one, other} <= {Sort.ENUM, Sort.STRING}:
        return left, right
    raise mismatch(position, Message("{0} cannot be compared with {1}", left.type, right.type))


#: Kind of a custom property → (function that converts the stored text, type of the result).
CUSTOM_TYPES = {
    Kind.DECIMAL: ("custom_number", REAL),
    Kind.DATE: ("custom_date", DATE),
    Kind.DATETIME: ("custom_datetime", DATETIME),
    Kind.BOOL: ("custom_bool", BOOL),
}


def typed_custom(value: CustomText) -> Bound:
    """The value of a custom property in the type of its definition; another member is text."""
    text = replace(value, type=STRING)
    if value.member != "Value" or value.kind not in CUSTOM_TYPES:
        return text
    function, result = CUSTOM_TYPES[value.kind]
    return Call(result, True, function, (text,))


def in_order_of_numbers(value: Bound, other: Bound) -> Bound:
    """Convert a text that is ordered against a custom property of numbers: '9' is less than '10'."""
    if value.type.sort is not Sort.STRING or not isinstance(other, CustomText) or other.kind is not Kind.DECIMAL:
        return value
    return Call(REAL, True, "text_to_number", (value,))


def _unify_custom(left: Bound, right: Bound, position: int) -> tuple[Bound, Bound]:
    custom, value = (left, right) if left.type.sort is Sort.CUSTOM else (right, left)
    text: Bound = replace(custom, type=STRING)
    result = text
    if isinstance(value, CustomText) and value.type.sort is Sort.CUSTOM:
        assert isinstance(custom, CustomText)
        return unify(typed_custom(custom), typed_custom(value), position)
    if value.type.sort is Sort.GUID and isinstance(custom, CustomText):
        # A guid is compared with the id of the reference or allowed value.
        result = replace(custom, type=STRING, member="ValueId")
        value = retype(value, STRING, _THIS_COMPARISON) if isinstance(value, Input) else call("to_text", STRING, value)
    elif value.type.sort is not Sort.STRING:
        result = typed_custom(custom) if isinstance(custom, CustomText) else text
        if value.type.sort is Sort.NUMBER and result.type.sort is not Sort.NUMBER:
            result = Call(REAL, True, "text_to_number", (text,))
        elif value.type.sort is Sort.DATE and result.type.sort is not Sort.DATETIME:
            result = result if result.type.sort is Sort.DATE else Call(DATE, True, "text_to_date", (text,))
        elif result.type.sort is Sort.STRING:
            raise mismatch(position, Message("a custom property cannot be compared with {0}", value.type))
        else:
            result, value = unify(result, value, position)
    return (result, value) if custom is left else (value, result)


def _retypable(value: Bound) -> bool:
    return isinstance(value, Input) and value.literal is not None


def null_as(value: Bound, target: ValueType) -> Bound:
    return replace(value, type=target) if value.type.sort is Sort.NULL else value


def as_datetime(value: Bound) -> Bound:
    return call("date_to_datetime", DATETIME, value) if value.type.sort is Sort.DATE else value


def by_number(value: Bound) -> Bound:
    """An enum value for ordering. Inputs become the number; columns hold names and are translated."""
    enum = value.type.enum
    assert enum is not None
    if isinstance(value, Input):
        convert, members = value.convert, enum.members

        def number(raw: Any) -> Any:
            member = convert(raw)
            return None if member is None else members[member]

        return replace(value, type=INTEGER, convert=number, literal=None)
    return Call(INTEGER, value.nullable, "enum_number", (value,))


def literal_scale(value: Any) -> int | None:
    """Decimal places of a literal; SLOT_SCALE for a parameterized one (None), whose value is unknown."""
    if value is None:
        return SLOT_SCALE
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) and exponent >= -_LITERAL_SCALE_MAX else None


def arithmetic_type(operator: str, left: ValueType, right: ValueType) -> ValueType:
    both_integer = left.integer and right.integer
    if operator == "divby" or (operator == "div" and not both_integer):
        return REAL
    if both_integer:
        return INTEGER
    if left.scale is None or right.scale is None:
        return REAL
    scale = left.scale + right.scale if operator == "mul" else max(left.scale, right.scale)
    return decimal_type(scale) if scale <= _SCALE_MAX else REAL


def number_result(types: list[ValueType]) -> ValueType:
    if all(each.integer for each in types):
        return INTEGER
    scales = [each.scale for each in types]
    known = [scale for scale in scales if scale is not None]
    return decimal_type(max(known)) if len(known) == len(scales) else REAL
