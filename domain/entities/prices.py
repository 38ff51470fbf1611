"""Selects the effective price of a product (spec 08, 8.4). Pure: without records and database."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

#: ISO 4217: currencies whose amounts have no decimals; all others are stored with two.
_WITHOUT_DECIMALS = frozenset({"BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"})  # fmt: skip # noqa: E501


@dataclass(frozen=True, slots=True)
class Price:
    """One price: `price` for `quantity` of `unit`, with conditions; None is no condition.

    priority   number of General.Priority
    buyers     guids that must equal the sale's if set: (customer, ship-to customer, price list, company, location)
    """

    id: str
    price: Decimal
    quantity: Decimal
    unit: str
    currency: str
    priority: int
    from_date: datetime.date | None
    thru_date: datetime.date | None
    min_quantity: Decimal | None
    max_quantity: Decimal | None
    buyers: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Sale:
    """A sale: product, date, currency, buyer; `buyers` as in Price."""

    date: datetime.date
    currency: str
    buyers: tuple[str | None, ...]


def best_price(prices: Iterable[Price], sale: Sale, quantity_in: Callable[[str], Decimal | None]) -> Price | None:
    """The effective price: highest priority, then most specific, then newest, then for the largest quantity.

    quantity_in(unit) converts the sold quantity to a unit, None if impossible.
    """
    valid = [price for price in prices if _holds(price, sale, quantity_in)]
    return max(valid, key=_rank, default=None)


def _holds(price: Price, sale: Sale, quantity_in: Callable[[str], Decimal | None]) -> bool:
    if price.currency != sale.currency:
        return False
    if price.from_date is not None and price.from_date > sale.date:
        return False
    if price.thru_date is not None and price.thru_date < sale.date:
        return False
    if any(wanted is not None and wanted != actual for wanted, actual in zip(price.buyers, sale.buyers, strict=True)):
        return False
    quantity = quantity_in(price.unit)
    if quantity is None:
        return False
    # Returns, with negative quantities, have the price of the original sale.
    amount = abs(quantity)
    if price.min_quantity is not None and amount < price.min_quantity:
        return False
    return price.max_quantity is None or amount <= price.max_quantity


def _rank(price: Price) -> tuple[int, int, datetime.date, Decimal, str]:
    named = sum(1 << (len(price.buyers) - index) for index, wanted in enumerate(price.buyers) if wanted is not None)
    return (price.priority, named, price.from_date or datetime.date.min, price.min_quantity or Decimal(0), price.id)


def line_amount(
    quantity: Decimal, unit_price: Decimal, standard_discount: Decimal, custom_discount: Decimal
) -> Decimal:
    """quantity × unit price × (1 − standard discount) × (1 − custom discount), exact."""
    return quantity * unit_price * (1 - standard_discount) * (1 - custom_discount)


def round_amount(amount: Decimal, currency_sign: str | None) -> Decimal:
    """The amount at the precision of the currency, half up."""
    digits = 0 if currency_sign in _WITHOUT_DECIMALS else 2
    return amount.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def exchange(amount: Decimal, multiplier: Decimal, divisor: Decimal) -> Decimal:
    """The amount in the other currency at a directory's rate, exact to the context's precision."""
    return amount * multiplier / divisor
