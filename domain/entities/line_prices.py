"""Prices of document lines: the effective price for a product, a quantity and a buyer (spec 08, 8.4)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from domain.dataset.tables.row_storage import CHUNK, row_storage_of
from domain.entities.behaviour import fill, per_commit, set_computed, set_suggested
from domain.entities.document_adjustments import is_adjustment, is_released
from domain.entities.enums import PRIORITY
from domain.entities.exchange_rates import exchange_rate
from domain.entities.line_quantities import equations_of, unit_of
from domain.entities.prices import Price, Sale, best_price, exchange
from domain.entities.units import Equation, Unit, convert, to_base
from domain.model.attributes import AtCommit, LateDefault
from domain.model.registry import derived, repositories
from domain.model.repository import Repository
from foundation.batches import batched

if TYPE_CHECKING:
    from domain.dataset.records.record import Record, UnitOfWork

_PRICES = "Crm.Pricing.ProductPrices"
_PRICE_MEMBERS = (
    "price",
    "price_quantity",
    "price_quantity_measurement_unit_id",
    "currency_id",
    "priority",
    "from_date",
    "thru_date",
    "min_quantity",
    "max_quantity",
)
_BUYERS = (
    "customer_id",
    "ship_to_customer_id",
    "price_list_id",
    "enterprise_company_id",
    "enterprise_company_location_id",
)

_PRICE_AND_BUYERS = ("product_id", *_PRICE_MEMBERS, *_BUYERS)


def lines_prepared(lines: str) -> LateDefault:
    """A late default of headers: preload data for the defaults of their lines, in one query each."""

    def by_header(dataset: UnitOfWork) -> dict[str, list[Record]]:
        owner = repositories[lines].owner_attribute.name
        result: dict[str, list[Record]] = {}
        for record in dataset.changed():
            if record.repository.name == lines and not record.is_deleted:
                result.setdefault(record.values[owner], []).append(record)
        return result

    @AtCommit
    def prepare_lines(header: Record) -> None:
        dataset = header.dataset
        changed = per_commit(dataset, ("changed lines", lines), lambda: by_header(dataset)).get(header.id, [])
        wanted = {line.product_id for line in changed if line.product_id is not None}
        if not wanted:
            return
        products = dataset.load_many("General.Products.Products", list(wanted))
        units = {line.quantity_unit_id for line in changed} | {p.measurement_unit_id for p in products.values()}
        dataset.load_many("General.Products.MeasurementUnits", [unit for unit in units if unit is not None])
        if header.document_currency_id is not None:
            result = _load_prices(dataset, wanted, header.document_currency_id)
            _prepared_prices(dataset).update(
                ((header.document_currency_id, product), prices) for product, prices in result.items()
            )

    return prepare_lines


def price_of_product(line: Record) -> None:
    """Calculation: the effective price for the product and unit."""
    if _corrects(line):
        fill(line, "unit_price", Decimal(0))
    elif (price := _find_unit_price(line)) is not None:
        set_computed(line, "unit_price", price)


def price_for_quantity(line: Record) -> None:
    """Calculation: the effective price for the new quantity.

    Keeps a price that a user set, and that of a released document, whose quantity an adjustment corrects.
    """
    header = line.parent
    if header is not None and is_released(header):
        return
    if (price := _find_unit_price(line)) is not None:
        set_suggested(line, "unit_price", price)


def _corrects(line: Record) -> bool:
    header = line.parent
    return header is not None and is_adjustment(header)


def _find_unit_price(line: Record) -> Decimal | None:
    """The price of the line; computed once, though product and quantity both trigger it.

    None in an adjustment, whose price is a difference.
    """
    if _corrects(line):
        return None
    header = line.parent
    question = (line.key, line.product_id, line.quantity_unit_id, line.quantity, line.dataset.now())
    last_question, last_price = line.dataset.memory.get("unit_price", (None, None))
    if last_question == question:
        known: Decimal | None = last_price
        return known
    price = _compute_unit_price(line, header)
    line.dataset.memory["unit_price"] = (question, price)
    return price


def _compute_unit_price(line: Record, header: Record | None) -> Decimal | None:
    product, unit = line.product, line.quantity_unit
    if header is None or product is None or unit is None or header.document_currency_id is None:
        return None
    sale = Sale(
        header.document_date or line.dataset.today(),
        header.document_currency_id,
        tuple([None if name is None else header.values.get(name) for name in _buyers_of(header.repository)]),
    )
    sold = unit_of(unit)
    equations: list[Equation] | None = None

    def quantity_in(quantity: Decimal, target_id: str) -> Decimal | None:
        nonlocal equations
        if target_id == sold.id:
            return quantity
        target = line.dataset.load("General.Products.MeasurementUnits", target_id)
        if target is None:
            return None
        if target.measurement_category_id != sold.category and equations is None:
            equations = equations_of(product)
        return convert(quantity, sold, unit_of(target), equations or ())

    price = best_price(
        _prices(line.dataset, product.id, sale.currency), sale, lambda id: quantity_in(line.quantity, id)
    )
    if "product_price" in line.repository.by_python_name:
        line.product_price_id = None if price is None else price.id
    if price is None:
        return _standard_price(line, product, header, sold, sale.date)
    one_sold_unit = quantity_in(Decimal(1), price.unit)
    assert one_sold_unit is not None  # best_price converted to the same unit
    return price.price / price.quantity * one_sold_unit if price.quantity else price.price * one_sold_unit


def _standard_price(line: Record, product: Record, header: Record, sold: Unit, date: datetime.date) -> Decimal | None:
    per_base = product.standard_price_per_lot / (product.standard_lot_size_base or Decimal(1))
    in_category = sold.category == product.base_measurement_category_id
    base = to_base(Decimal(1), sold, product.base_measurement_category_id, () if in_category else equations_of(product))
    if base is None:
        return None
    amount: Decimal = per_base * base
    source, target = product.costing_currency_id, header.document_currency_id
    if amount == 0 or source is None or source == target:
        return amount
    rate = exchange_rate(line.dataset, source, target, date)
    # Without a rate the price is zero, which users notice; they may overlook an amount in the wrong currency.
    return exchange(amount, *rate) if rate is not None else Decimal(0)


def _prices(dataset: UnitOfWork, product: str, currency: str) -> list[Price]:
    prepared = _prepared_prices(dataset)
    if (currency, product) not in prepared:
        prepared[currency, product] = _load_prices(dataset, {product}, currency)[product]
    return prepared[currency, product]


def _prepared_prices(dataset: UnitOfWork) -> dict[tuple[str, str], list[Price]]:
    """(currency, product) → prices."""
    return per_commit(dataset, "prices", dict[tuple[str, str], list[Price]])


def _load_prices(dataset: UnitOfWork, products: Iterable[str], currency: str) -> dict[str, list[Price]]:
    """Product → its active prices in the currency; changed ones of this dataset replace stored ones."""
    result: dict[str, list[Price]] = {product: [] for product in products}
    dataset.load_pending(_PRICES)
    pending = {record.id: record for record in dataset.changed() if record.repository.name == _PRICES}
    for id, values in _stored_prices(list(result), currency):
        if id not in pending:
            result[values["product_id"]].append(_price(id, values))
    for record in pending.values():
        if record.product_id in result and record.is_active and not record.is_deleted:
            row = {name: getattr(record, name) for name in (*_PRICE_MEMBERS, *_BUYERS)}
            result[record.product_id].append(_price(record.id, row))
    return result


def _stored_prices(products: Sequence[str], currency: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(guid, Python name → value) of the active prices of the products in the currency.

    The statement does not filter by currency: most prices have the same one, and SQLite without statistics would scan
    them all by that column's index.
    """
    repository = repositories[_PRICES]
    names = {name: repository.by_python_name[name.removesuffix("_id")].name for name in _PRICE_AND_BUYERS}
    for part in batched(products, CHUNK):
        marks = ", ".join(["%s"] * len(part))
        for id, row in row_storage_of(repository).load_where(f"product_id IN ({marks}) AND is_active", part).items():
            values = {name: row.values[api_name] for name, api_name in names.items()}
            if values["currency_id"] == currency:
                yield id, values


def _price(id: str, row: Mapping[str, Any]) -> Price:
    return Price(
        id=id,
        price=row["price"],
        quantity=row["price_quantity"],
        unit=row["price_quantity_measurement_unit_id"],
        currency=row["currency_id"],
        priority=PRIORITY.members[row["priority"]],
        from_date=row["from_date"],
        thru_date=row["thru_date"],
        min_quantity=row["min_quantity"],
        max_quantity=row["max_quantity"],
        buyers=tuple(row[name] for name in _BUYERS),
    )


@derived
def _buyers_of(headers: Repository[Any]) -> tuple[str | None, ...]:
    """API names of the headers' references for `_BUYERS`; None for one that they do not have."""
    known = [headers.by_python_name.get(name.removesuffix("_id")) for name in _BUYERS]
    return tuple(None if attribute is None else attribute.name for attribute in known)
