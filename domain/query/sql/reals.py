"""Formats and rounds numbers without a fixed scale: quotients, averages and values computed from them.

SQLite computes them as binary floating point, PostgreSQL as decimals. Both are displayed, compared, ordered, grouped
and rounded equally: to 15 digits, and to at most 12 places. Numbers of 10^200 and more are null.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from domain.model.template_syntax import plain_number

DIGITS, PLACES = 15, 12
LIMIT = 1e200
_LAST_PLACE = Decimal(1).scaleb(-PLACES)


def rounded(value: float | str | None) -> float | None:
    """The number as displayed and compared."""
    result = _rounded(value)
    return float(result) if result is not None else None


def real_text(value: float | str | None) -> str | None:
    """The result of `rounded` in decimal notation without trailing zeros."""
    result = _rounded(value)
    return None if result is None else plain_number(result)


def real_scaled(value: float | None, scale: int) -> int | None:
    """The number rounded half away from zero to `scale` places, as a scaled integer."""
    result = _rounded(value)
    if result is None or result.adjusted() + scale > 17:
        return None
    return int(result.scaleb(scale).to_integral_value(ROUND_HALF_UP))


def decimal_text(value: int | float | None, scale: int) -> str | None:
    """A scaled integer in decimal notation without trailing zeros."""
    return None if value is None else plain_number(Decimal(value).scaleb(-scale))


def _rounded(value: float | str | None) -> Decimal | None:
    number = float(value) if value is not None else LIMIT
    if not abs(number) < LIMIT:
        return None
    result = Decimal(f"{number:.{DIGITS}g}")
    exponent = result.as_tuple().exponent
    assert isinstance(exponent, int)
    return result.quantize(_LAST_PLACE, ROUND_HALF_UP) if exponent < -PLACES else result
