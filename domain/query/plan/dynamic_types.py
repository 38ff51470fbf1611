"""Types of values that $metadata does not declare: those of $compute and $apply (OData JSON 4.01, 4.6.3)."""

from __future__ import annotations

from domain.query.base.bound import Bound, Call, Column, Counted, Input, Output, Sort
from domain.query.plan.aggregation import Aggregate, ChildAggregate

#: Functions whose results always fit 32 bits.
_SMALL = frozenset({"year", "month", "day", "hour", "minute", "second", "zero_for", "length", "indexof", "enum_number"})
#: Sorts without type control: JSON shows the type, or the value is not of a primitive or complex type.
_UNTYPED = frozenset({Sort.STRING, Sort.BOOL, Sort.NULL, Sort.SECRET, Sort.REFERENCE})
INT64, DECIMAL = "#Int64", "#Decimal"


def type_control(value: Bound) -> str:
    """The value of `@odata.type` for a value without a declared type; "" if JSON needs none."""
    if value.type.sort in _UNTYPED:
        return ""
    if value.type.integer:
        return _integer_type(value)
    return f"#{str(value.type).removeprefix('Edm.')}"


def _integer_type(value: Bound) -> str:
    """The type of an integer. Counts of rows and sums are Edm.Decimal (Data Aggregation 4.0, 3.1.3)."""
    match value:
        case Aggregate(method="min" | "max", operand=Bound() as operand):
            return _integer_type(operand)
        case ChildAggregate(method="min" | "max", operand=Bound() as operand):
            return _integer_type(operand)
        case Aggregate() | ChildAggregate() | Output() | Call(name="or_zero"):
            return DECIMAL
        case Counted():
            return INT64
        case Column() | Input():
            return "#Int32"
        case Call(name=name) if name in _SMALL:
            return "#Int32"
    return INT64


def is_text_in_ieee754(control: str, value: Bound) -> bool:
    """Whether an integer is a string in IEEE754Compatible JSON."""
    return value.type.integer and control in (INT64, DECIMAL)
