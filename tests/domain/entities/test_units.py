"""Conversion of quantities between units."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.entities.units import Equation, Unit, convert, to_base

PIECE = Unit("pcs", "count", Decimal(1), Decimal(1))
DOZEN = Unit("dz", "count", Decimal(12), Decimal(1))
GRAM = Unit("g", "mass", Decimal(1), Decimal(1000))
KILOGRAM = Unit("kg", "mass", Decimal(1), Decimal(1))
#: Two pieces weigh three kilograms.
WEIGHT = Equation(Decimal(2), PIECE, Decimal(3), KILOGRAM)


@pytest.mark.parametrize(
    "quantity,unit,category,expected",
    [
        ("2", DOZEN, "count", "24"),
        ("500", GRAM, "mass", "0.5"),
        ("4", PIECE, "mass", "6"),
        ("1", DOZEN, "mass", "18"),
        ("1500", GRAM, "count", "1"),
    ],
)
def test_quantities_come_to_the_base_unit(quantity: str, unit: Unit, category: str, expected: str) -> None:
    assert to_base(Decimal(quantity), unit, category, [WEIGHT]) == Decimal(expected)


def test_there_is_no_way_between_categories_without_an_equation() -> None:
    assert to_base(Decimal(1), PIECE, "mass") is None
    assert convert(Decimal(1), PIECE, GRAM) is None


def test_an_equation_of_other_categories_does_not_help() -> None:
    litre = Unit("l", "volume", Decimal(1), Decimal(1))
    assert convert(Decimal(1), litre, PIECE, [WEIGHT]) is None


@given(st.decimals(min_value=0, max_value=10**6, places=3))
def test_there_and_back_again_is_where_it_began(quantity: Decimal) -> None:
    there = convert(quantity, PIECE, GRAM, [WEIGHT])
    assert there is not None
    back = convert(there, GRAM, PIECE, [WEIGHT])
    assert back is not None
    assert abs(back - quantity) < Decimal("0.0000001")
