"""Converts quantities between units of measurement (spec 08, 8.4). Pure: without records and database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit that equals multiplier ÷ divisor of its category's base unit."""

    id: str
    category: str
    multiplier: Decimal
    divisor: Decimal

    @property
    def ratio(self) -> Decimal:
        """The number of base units in one unit."""
        return self.multiplier / self.divisor


@dataclass(frozen=True, slots=True)
class Equation:
    """A conversion of one product: `quantity` of `unit` is `other_quantity` of `other_unit`, of another category."""

    quantity: Decimal
    unit: Unit
    other_quantity: Decimal
    other_unit: Unit


def to_base(quantity: Decimal, unit: Unit, category: str, equations: Sequence[Equation] = ()) -> Decimal | None:
    """The quantity in the base unit of the category; None without a conversion of the product. Not rounded."""
    if unit.category == category:
        return quantity * unit.ratio
    for equation in equations:
        for near_quantity, near, far_quantity, far in (
            (equation.quantity, equation.unit, equation.other_quantity, equation.other_unit),
            (equation.other_quantity, equation.other_unit, equation.quantity, equation.unit),
        ):
            if near.category == unit.category and far.category == category and near_quantity:
                return quantity * unit.ratio / (near_quantity * near.ratio) * far_quantity * far.ratio
    return None


def convert(quantity: Decimal, unit: Unit, target: Unit, equations: Sequence[Equation] = ()) -> Decimal | None:
    """The quantity in the target unit; None if impossible. Not rounded."""
    base = to_base(quantity, unit, target.category, equations)
    return None if base is None or not target.ratio else base / target.ratio
