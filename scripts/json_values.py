"""Checks on untrusted JSON values in bounded time."""

from __future__ import annotations

from decimal import Decimal
from math import isinf
from typing import Any


def has_more_parts(value: Any, limit: int) -> bool:
    """Whether a value contains more than `limit` values, at any depth."""
    waiting, found = [value], 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            found += len(item)
            if found > limit:
                return True
            waiting.extend(item.values() if isinstance(item, dict) else item)
    return False


def as_doubles(value: Any) -> Any:
    """The value with JavaScript's numbers: doubles, and integers of at most 64 bits.

    Raises OverflowError for a number beyond doubles, such as 1e400.
    """
    match value:
        case dict():
            return {name: as_doubles(inner) for name, inner in value.items()}
        case list():
            return [as_doubles(inner) for inner in value]
        case int() if -(2**63) <= value < 2**63:
            return value
        case int() | Decimal():
            double = float(value)
            if isinf(double):
                raise OverflowError
            return double
    return value


def is_integer(value: Any) -> bool:
    """Whether a number has no fraction, as in JSON Schema (Draft 2020-12 core, 4.2.3): 1.0 is an integer."""
    match value:
        case bool():
            return False
        case int():
            return True
        case float():
            return value.is_integer()
        case Decimal():
            return value == value.to_integral_value()
    return False


def is_multiple(number: float | Decimal, divisor: float | Decimal) -> bool:
    """Whether number is an exact decimal multiple of divisor.

    1E+400 and 1E+300000 cost no more than 1: powers of ten are never expanded.
    """
    factor, exponent = _digits(number)
    unit, unit_exponent = _digits(divisor)
    if unit == 0:
        return False
    shift = exponent - unit_exponent
    if shift >= 0:
        return factor * pow(10, shift, unit) % unit == 0
    # factor must have as many trailing zeros as its exponent lacks.
    return factor == 0 or (-shift < len(str(factor)) and factor % (unit * 10**-shift) == 0)


def _digits(number: float | Decimal) -> tuple[int, int]:
    """(digits without sign, exponent of ten)."""
    _, digits, exponent = Decimal(str(number)).as_tuple()
    assert isinstance(exponent, int)
    return int("".join(map(str, digits))), exponent


def comparable(value: Any) -> Any:
    """A hashable form that is equal for equal values only, as in JSON Schema: 1 is 1.0, and is not true.

    Raises RecursionError for too deep nesting.
    """
    if isinstance(value, dict):
        return ("object", frozenset((name, comparable(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple([comparable(item) for item in value]))
    return (isinstance(value, bool), value)
