"""Mass data for benchmarks: products and orders written by bulk statements, without the dataset.

Only this module writes entity tables without the commit pipeline: a million products through it would take an hour. The
rows are the same as the pipeline's.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.db import transaction

from domain.dataset.tables.row_storage import row_storage_of
from domain.demo import master_data
from domain.demo.items import Kind, demo_guid
from domain.demo.words import SERIES
from domain.model.registry import repositories

#: Called with the name of the data, the number of loaded rows, and the total.
Progress = Callable[[str, int, int], None]

Rows = list[tuple[dict[str, Any], dict[str, Any]]]

CHUNK = 5_000
LINES_PER_ORDER = 5
_FIRST_DAY = datetime.date(2020, 1, 1)
_DAYS = 1_800
_STATES = ("Released", "New", "Completed", "Completed", "Closed", "Released", "FirmPlanned", "Completed")
_NOON = datetime.time(12)
_STAMP = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def load_mass_data(products: int, orders: int, progress: Progress) -> None:
    """Load products and orders up to these numbers; continues an interrupted run."""
    _load(
        "products", products, CHUNK, product_rows, ("General.Products.Products", "Crm.Pricing.ProductPrices"), progress
    )
    _load(
        "orders",
        orders,
        CHUNK // LINES_PER_ORDER,
        lambda numbers: order_rows(numbers, products),
        ("Crm.Sales.SalesOrders", "Crm.Sales.SalesOrderLines"),
        progress,
    )


def _load(
    what: str,
    count: int,
    chunk: int,
    rows: Callable[[range], tuple[Rows, ...]],
    names: tuple[str, ...],
    progress: Progress,
) -> None:
    progress(what, 0, count)
    for start in range(0, count, chunk):
        numbers = range(start, min(start + chunk, count))
        with transaction.atomic():
            first = row_storage_of(repositories[names[0]])
            kind = Kind.MASS_PRODUCT if what == "products" else Kind.MASS_ORDER
            if not first.existing([demo_guid(kind, numbers[-1])]):
                for name, group in zip(names, rows(numbers), strict=True):
                    row_storage_of(repositories[name]).insert(group)
        progress(what, numbers[-1] + 1, count)


def _initial(repository: str) -> dict[str, Any]:
    """The initial values of a new entity."""
    return {
        "ObjectVersion": 1,
        **{a.name: a.initial() for a in repositories[repository].attributes.values() if a.default is not None},
    }


def _price(number: int) -> Decimal:
    """Between 1.00 and 1000.99, spread over the products."""
    return Decimal(100 + number * 7919 % 100_000) / 100


def product_rows(numbers: range) -> tuple[Rows, ...]:
    """Products and one price each."""
    groups = [group for group in master_data.product_groups() if not group[3]]
    eur, category = master_data.currency("EUR"), demo_guid(Kind.UNIT_CATEGORY, 0)
    product = {
        **_initial("General.Products.Products"),
        "AggregateLastUpdateTimeUtc": _STAMP,
        "CreationTime": _STAMP,
        "CreationUser": "system",
        "ProductType": master_data.GOODS,
        "MeasurementUnit": master_data.PIECE,
        "BaseMeasurementCategory": category,
        "EnterpriseCompany": master_data.ENTERPRISE_COMPANY,
        "CostingCurrency": eur,
    }
    price = {
        **_initial("Crm.Pricing.ProductPrices"),
        "AggregateLastUpdateTimeUtc": _STAMP,
        "Currency": eur,
        "FromDate": master_data.PRICES_FROM,
        "PriceQuantityMeasurementUnit": master_data.PIECE,
    }
    products: Rows = []
    prices: Rows = []
    for number in numbers:
        id, amount = demo_guid(Kind.MASS_PRODUCT, number), _price(number)
        group_id, _, group, _ = groups[number % len(groups)]
        noun = group.nouns[number // 7 % len(group.nouns)]
        series = SERIES[number % len(SERIES)]
        products.append(
            (
                {
                    **product,
                    "Id": id,
                    "PartNumber": f"M{number:07d}",
                    "Name": {language: f"{series} {number} {text}" for language, text in noun.items()},
                    "ProductGroup": group_id,
                    "ABCClass": "ABC"[number % 3],
                    "StandardPricePerLot": amount,
                    "StandardCostPerLot": amount * Decimal("0.6"),
                },
                {},
            )
        )
        prices.append(({**price, "Id": demo_guid(Kind.MASS_PRICE, number), "Product": id, "Price": amount}, {}))
    return products, prices


def order_rows(numbers: range, products: int) -> tuple[Rows, ...]:
    """Orders and their lines."""
    eur = master_data.currency("EUR")
    order = {
        **_initial("Crm.Sales.SalesOrders"),
        "AggregateLastUpdateTimeUtc": _STAMP,
        "CreationUser": "system",
        "DocumentType": master_data.SALES_ORDER_TYPE,
        "EntityName": "Crm_Sales_Orders",
        "EnterpriseCompany": master_data.ENTERPRISE_COMPANY,
        "EnterpriseCompanyLocation": master_data.LOCATION,
        "FromParty": master_data.COMPANY,
        "DocumentCurrency": eur,
        "Store": master_data.STORE,
    }
    line = {
        **_initial("Crm.Sales.SalesOrderLines"),
        "QuantityUnit": master_data.PIECE,
        "LineStore": master_data.STORE,
    }
    orders: Rows = []
    lines: Rows = []
    for number in numbers:
        id = demo_guid(Kind.MASS_ORDER, number)
        day = _FIRST_DAY + datetime.timedelta(days=number * _DAYS // 200_000 % _DAYS)
        moment = datetime.datetime.combine(day, _NOON, tzinfo=datetime.UTC)
        state = _STATES[number % len(_STATES)]
        total = Decimal(0)
        for index in range(LINES_PER_ORDER):
            values = _line(number * LINES_PER_ORDER + index, products, line)
            values.update({"SalesOrder": id, "LineNo": index * 10 + 10, "RequiredDeliveryDate": day})
            total += values["LineAmount"]
            lines.append((values, {}))
        customer = number * 31 % master_data.CUSTOMERS
        orders.append(
            (
                {
                    **order,
                    "Id": id,
                    "DocumentNo": f"M{number:09d}",
                    "DocumentDate": day,
                    "ReferenceDate": moment,
                    "CreationTime": moment,
                    "MasterDocument": id,
                    "State": state,
                    "FullState": state,
                    "Customer": demo_guid(Kind.CUSTOMER, customer),
                    "ToParty": _party(customer),
                    "SalesPerson": demo_guid(Kind.SALES_PERSON, customer % master_data.SALES_PERSONS),
                    "PaymentDueStartDate": moment,
                    "PaymentDueDate": moment,
                    "RequiredDeliveryDate": day,
                    "ReleaseTime": moment if state in ("Released", "Completed", "Closed") else None,
                    "CompleteTime": moment if state in ("Completed", "Closed") else None,
                    "TotalLineAmount": total,
                    "AmountToPay": total,
                },
                {},
            )
        )
    return orders, lines


def _line(number: int, products: int, line: dict[str, Any]) -> dict[str, Any]:
    product = number * 7 % products
    price, quantity = _price(product), Decimal(1 + number % 9)
    series = SERIES[product % len(SERIES)]
    return {
        **line,
        "Id": demo_guid(Kind.MASS_ORDER_LINE, number),
        "Product": demo_guid(Kind.MASS_PRODUCT, product),
        "ProductPrice": demo_guid(Kind.MASS_PRICE, product),
        "ProductDescription": {"EN": f"{series} {product}"},
        "Quantity": quantity,
        "QuantityBase": quantity,
        "StandardQuantityBase": quantity,
        "UnitPrice": price,
        "LineAmount": price * quantity,
    }


def _party(customer: int) -> str:
    """The party of a demo customer: every second one is a company."""
    if customer % 2 == 0:
        return demo_guid(Kind.COMPANY, customer + 1)
    return demo_guid(Kind.PERSON, master_data.SALES_PERSONS + customer)
