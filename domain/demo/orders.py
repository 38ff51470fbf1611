"""Demo sales orders and offers, in several states and with user statuses."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from domain.demo import master_data
from domain.demo.items import Item, Kind, demo_guid

ORDERS = 100
OFFERS = 10
FIRST_DAY = datetime.date(2025, 1, 2)
#: Frequency of each state among ten orders, with the user status of such orders.
STATES: tuple[tuple[str, str | None], ...] = (
    ("Released", master_data.PICKING),
    ("New", None),
    ("Completed", master_data.SETTLED),
    ("FirmPlanned", master_data.CONFIRMED),
    ("Released", master_data.SHIPPED),
    ("New", None),
    ("Completed", None),
    ("Planned", None),
    ("Closed", None),
    ("Released", None),
)
_WAY = ("Planned", "FirmPlanned", "Released", "Completed", "Closed")


def orders() -> Iterator[Item]:
    """Orders with one to five lines. The model's behaviours set prices, units and totals."""
    chance = random.Random(20250101)
    line = 0
    for number in range(ORDERS):
        order = demo_guid(Kind.ORDER, number)
        state, status = STATES[number % len(STATES)]
        day = FIRST_DAY + datetime.timedelta(days=number * 3)
        values: dict[str, Any] = {
            "DocumentType": master_data.SALES_ORDER_TYPE,
            "EnterpriseCompany": master_data.ENTERPRISE_COMPANY,
            "Customer": demo_guid(Kind.CUSTOMER, chance.randrange(master_data.CUSTOMERS)),
            "DocumentDate": day,
            "Store": master_data.STORE,
            "State": state,
            "UserStatus": status,
        }
        if number % 4:
            values["ReferenceDocumentNo"] = f"PO-{2000 + number}"
        values.update(_state_times(state, day))
        yield Item("Crm.Sales.SalesOrders", order, values)
        for _ in range(chance.randint(1, 5)):
            yield Item("Crm.Sales.SalesOrderLines", demo_guid(Kind.ORDER_LINE, line), _line(order, chance))
            line += 1
        yield from _state_changes(number, order, state, status, day)


def offers() -> Iterator[Item]:
    """A few offers with two lines each."""
    chance = random.Random(20250102)
    for number in range(OFFERS):
        offer = demo_guid(Kind.OFFER, number)
        yield Item(
            "Crm.Presales.Offers",
            offer,
            {
                "DocumentType": master_data.OFFER_TYPE,
                "EnterpriseCompany": master_data.ENTERPRISE_COMPANY,
                "Customer": demo_guid(Kind.CUSTOMER, chance.randrange(master_data.CUSTOMERS)),
                "DocumentDate": FIRST_DAY + datetime.timedelta(days=number * 7),
            },
        )
        for index in range(2):
            values = _line(offer, chance)
            values["Offer"] = values.pop("SalesOrder")
            yield Item("Crm.Presales.OfferLines", demo_guid(Kind.OFFER_LINE, number * 2 + index), values)


def _line(order: str, chance: random.Random) -> dict[str, Any]:
    return {
        "SalesOrder": order,
        "Product": demo_guid(Kind.PRODUCT, chance.randrange(master_data.PRODUCTS)),
        "Quantity": Decimal(chance.choice((1, 1, 1, 2, 2, 3, 5, 10, 20))),
        "LineCustomDiscountPercent": Decimal(chance.choice(("0", "0", "0", "0.05", "0.10"))),
    }


def _moment(day: datetime.date, hours: int) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(9), tzinfo=datetime.UTC) + datetime.timedelta(hours=hours)


def _state_times(state: str, day: datetime.date) -> dict[str, datetime.datetime]:
    times = {}
    if state in ("Released", "Completed", "Closed"):
        times["ReleaseTime"] = _moment(day, 2)
    if state in ("Completed", "Closed"):
        times["CompleteTime"] = _moment(day, 50)
    return times


def _state_changes(number: int, order: str, state: str, status: str | None, day: datetime.date) -> Iterator[Item]:
    if state not in _WAY:
        return
    way = _WAY[: _WAY.index(state) + 1]
    for index, reached in enumerate(way):
        yield Item(
            "General.Documents.DocumentStateChanges",
            demo_guid(Kind.STATE_CHANGE, number * 10 + index),
            {
                "Document": order,
                "NewState": reached,
                "UpdateTime": _moment(day, index),
                "UpdateUser": "admin",
                "UserStatus": status if reached == state else None,
            },
        )
