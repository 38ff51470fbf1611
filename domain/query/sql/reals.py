"""Numbers without a fixed scale: quotients, averages and what is computed of them.

SQLite has them as binary floating point, PostgreSQL as decimals. They are shown, compared, ordered, grouped and rounded
as both have them alike: to 15 digits, and of these to 12 places. Those of 10^200 and more are null.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

DIGITS, PLACES = 15, 12
LIMIT = 1e200
_LAST_PLACE = Decimal(1).scaleb(-PLACES)


def rounded(value: float | str | None) -> float | None:
    """The number as it is shown and compared."""
    made = _rounded(value)
    return float(made) if made is not None else None


def real_text(value: float | str | None) -> str | None:
    """As `rounded`, in decimal notation without trailing zeros."""
    made = _rounded(value)
    if made is None:
        return None
    text = f"{made:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rounded(value: float | str | None) -> Decimal | None:
    number = float(value) if value is not None else LIMIT
    if not abs(number) < LIMIT:
        return None
    made = Decimal(f"{number:.{DIGITS}g}")
    exponent = made.as_tuple().exponent
    assert isinstance(exponent, int)
    return made.quantize(_LAST_PLACE, ROUND_HALF_UP) if exponent < -PLACES else made
