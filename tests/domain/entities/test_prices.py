"""Which price holds, and what a line comes to."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal

import pytest

from domain.entities.prices import Price, Sale, best_price, line_amount, round_amount

DAY = datetime.date(2025, 6, 15)
NOBODY = (None, None, None, None, None)
BASE = Price("a", Decimal(10), Decimal(1), "pcs", "EUR", 2, None, None, None, None, NOBODY)
SALE = Sale(DAY, "EUR", ("ann", None, "wholesale", "danubia", None))


def _best(*prices: Price, quantity: str = "5", sale: Sale = SALE) -> str | None:
    found = best_price(prices, sale, lambda unit: Decimal(quantity) if unit == "pcs" else None)
    return found.id if found else None


@pytest.mark.parametrize(
    "price",
    [
        replace(BASE, currency="USD"),
        replace(BASE, from_date=DAY + datetime.timedelta(days=1)),
        replace(BASE, thru_date=DAY - datetime.timedelta(days=1)),
        replace(BASE, min_quantity=Decimal(6)),
        replace(BASE, max_quantity=Decimal(4)),
        replace(BASE, unit="kg"),
        replace(BASE, buyers=("bob", None, None, None, None)),
    ],
)
def test_a_price_out_of_its_bounds_does_not_hold(price: Price) -> None:
    assert _best(price) is None


def test_bounds_hold_on_their_own_day_and_quantity() -> None:
    assert _best(replace(BASE, from_date=DAY, thru_date=DAY, min_quantity=Decimal(5), max_quantity=Decimal(5))) == "a"


def test_priority_goes_before_everything() -> None:
    special = replace(BASE, id="b", buyers=("ann", None, None, None, None))
    assert _best(replace(BASE, priority=4), special) == "a"


def test_the_price_for_the_customer_goes_before_the_one_for_everybody() -> None:
    assert _best(BASE, replace(BASE, id="b", buyers=("ann", None, None, None, None))) == "b"


def test_the_newest_price_goes_before_older_ones() -> None:
    older = replace(BASE, id="z", from_date=datetime.date(2024, 1, 1))
    assert _best(older, replace(BASE, id="b", from_date=datetime.date(2025, 1, 1))) == "b"


def test_the_price_for_larger_quantities_goes_before_that_for_smaller_ones() -> None:
    assert _best(BASE, replace(BASE, id="b", min_quantity=Decimal(3))) == "b"


def test_returns_have_the_price_of_what_is_returned() -> None:
    assert _best(BASE, replace(BASE, id="b", min_quantity=Decimal(3)), quantity="-5") == "b"


def test_a_line_is_quantity_times_price_less_both_discounts() -> None:
    assert line_amount(Decimal(3), Decimal("9.99"), Decimal("0.1"), Decimal("0.05")) == Decimal("25.62435")


@pytest.mark.parametrize(
    "amount,sign,expected",
    [("1.005", "EUR", "1.01"), ("-1.005", "EUR", "-1.01"), ("1.5", "JPY", "2"), ("2.675", None, "2.68")],
)
def test_amounts_are_rounded_half_up_to_the_currency(amount: str, sign: str | None, expected: str) -> None:
    assert round_amount(Decimal(amount), sign) == Decimal(expected)
