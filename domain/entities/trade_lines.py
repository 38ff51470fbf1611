"""What lines of offers, orders and invoices have in common: units, prices, discounts, amounts (spec 08, 8.4)."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.db import connection

from domain.database.cursor import fetch
from domain.dataset.tables.storage import chunks, storage_of
from domain.entities.behaviour import at_commit, depend, fill, find_one, follow, per_commit, scratch
from domain.entities.enums import PRIORITY
from domain.entities.prices import Price, Sale, best_price, exchange, line_amount, round_amount
from domain.entities.units import Equation, Unit, convert, to_base
from domain.model.attributes import Calculation, LateDefault
from domain.model.registry import repositories
from foundation import errors

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
_RATES = "General.Currencies.CurrencyDirectoryLines"

#: What lines are totalled by their header or product: their wide rows are not read for it (ReferenceField.covers).
TOTALLED = ("line_amount", "quantity_base")

# --- units --------------------------------------------------------------------------------------------------------


def unit_of(record: Record) -> Unit:
    """The unit of measurement of a record of General.Products.MeasurementUnits."""
    return Unit(record.id, record.measurement_category_id, record.multiplier, record.divisor)


def equations_of(product: Record) -> list[Equation]:
    """How quantities of the product are expressed in units of other categories."""
    return [
        Equation(
            dimension.source_quantity,
            unit_of(dimension.source_quantity_unit),
            dimension.dest_quantity,
            unit_of(dimension.dest_quantity_unit),
        )
        for dimension in product.children("Dimensions")
        if dimension.source_quantity_unit is not None and dimension.dest_quantity_unit is not None
    ]


def base_quantity(line: Record) -> Decimal | None:
    """The line's quantity in the product's base unit; None while product, unit or quantity are missing."""
    product, unit = line.product, line.quantity_unit
    if product is None or unit is None or line.quantity is None:
        return None
    category = product.base_measurement_category_id
    same_category = unit.measurement_category_id == category
    return to_base(line.quantity, unit_of(unit), category, () if same_category else equations_of(product))


def unit_from_product(line: Record) -> None:
    """Late default: the unit that the product is measured in."""
    if line.quantity_unit_id is None and (product := line.product) is not None:
        fill(line, "quantity_unit_id", product.measurement_unit_id)


def description_from_product(line: Record) -> None:
    """Late default: the product's name."""
    if not line.product_description and (product := line.product) is not None:
        fill(line, "product_description", product.name)


def copy_product(line: Record) -> None:
    """Calculation: another product brings its own description and unit."""
    product = line.product
    if product is not None:
        depend(line, "product_description", product.name)
        depend(line, "quantity_unit_id", product.measurement_unit_id)


def quantities_in_base(line: Record) -> None:
    """Calculation: the quantity in the product's base unit."""
    quantity = base_quantity(line)
    if quantity is None and line.product_id is None and line.quantity is not None:
        quantity = line.quantity  # a line of text has no base unit
    if quantity is not None:
        depend(line, "quantity_base", quantity)
        depend(line, "standard_quantity_base", quantity)
    elif line.dataset.model == "common":
        # Said here, or the values that cannot be computed would be reported as missing.
        unit_fits_product(line)


def unit_fits_product(line: Record) -> None:
    """Validation: the unit belongs to the product's category, or one of the product's dimensions leads there."""
    if line.is_deleted:
        return
    product, unit = line.product, line.quantity_unit
    if product is not None and unit is not None and line.quantity is not None and base_quantity(line) is None:
        raise errors.Refused(errors.UNIT_CATEGORY, unit.describe(), product.describe(), target="QuantityUnit")


# --- prices -------------------------------------------------------------------------------------------------------


def lines_prepared(lines: str) -> LateDefault:
    """A late default of headers: load what the defaults of their lines will ask for, in one query each."""

    def by_header(dataset: UnitOfWork) -> dict[str, list[Record]]:
        owner = repositories[lines].owner_attribute.name
        found: dict[str, list[Record]] = {}
        for record in dataset.changed():
            if record.repository.name == lines and not record.is_deleted:
                found.setdefault(record.values[owner], []).append(record)
        return found

    @at_commit
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
            found = _load_prices(dataset, wanted, header.document_currency_id)
            _prepared_prices(dataset).update(
                ((header.document_currency_id, product), prices) for product, prices in found.items()
            )

    return prepare_lines


def price_of_product(line: Record) -> None:
    """Calculation: the price that holds for the product and unit."""
    if (price := _find_unit_price(line)) is not None:
        depend(line, "unit_price", price)


def price_for_quantity(line: Record) -> None:
    """Calculation: another quantity may have another price, but never replaces a price that somebody typed."""
    if (price := _find_unit_price(line)) is not None:
        follow(line, "unit_price", price)


def _find_unit_price(line: Record) -> Decimal | None:
    """The price for the line as it is. A commit asks for the product and for the quantity; it is found once."""
    header = line.parent
    question = (line.key, line.product_id, line.quantity_unit_id, line.quantity, line.dataset.now())
    asked, answer = scratch(line.dataset).get("unit_price", (None, None))
    if asked == question:
        known: Decimal | None = answer
        return known
    found = _compute_unit_price(line, header)
    scratch(line.dataset)["unit_price"] = (question, found)
    return found


def _compute_unit_price(line: Record, header: Record | None) -> Decimal | None:
    product, unit = line.product, line.quantity_unit
    if header is None or product is None or unit is None or header.document_currency_id is None:
        return None
    sale = Sale(
        header.document_date or line.dataset.today(),
        header.document_currency_id,
        tuple(_optional(header, name) for name in _BUYERS),
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
    assert one_sold_unit is not None  # best_price asked the same
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
    # Without a rate there is no price: zero asks to be looked at, a sum in the wrong currency does not.
    return exchange(amount, *rate) if rate is not None else Decimal(0)


def exchange_rate(dataset: UnitOfWork, source: str, target: str, date: datetime.date) -> tuple[Decimal, Decimal] | None:
    """(multiplier, divisor) from one currency to another by the newest directory in force; None where there is none.

    Looked up once for all lines of a commit.
    """
    return per_commit(dataset, ("rate", source, target, date), lambda: _stored_rate(dataset, source, target, date))


def _stored_rate(dataset: UnitOfWork, source: str, target: str, date: datetime.date) -> tuple[Decimal, Decimal] | None:
    for origin, goal, inverse in ((source, target, False), (target, source, True)):
        directory = _directory_line(dataset, origin, goal, date)
        if directory is not None:
            rate = (directory.rate_multiplier, directory.rate_divisor)
            return (rate[1], rate[0]) if inverse else rate
    return None


def _directory_line(dataset: UnitOfWork, source: str, target: str, date: datetime.date) -> Record | None:
    """The line of the newest directory in force on the date."""
    lines, directories = repositories[_RATES], repositories["General.Currencies.CurrencyDirectories"]
    for name in (lines, directories):
        dataset.load_pending(name)
    if any(record.repository in (lines, directories) for record in dataset.changed()):
        return find_one(
            dataset,
            _RATES,
            order_by=("-currency_directory__document_date",),
            from_currency_id=source,
            currency_directory__to_currency_id=target,
            currency_directory__document_date__lte=date,
            currency_directory__void=False,
        )
    on = connection.ops.adapt_datefield_value(date)
    found = fetch(_directory_line_sql(), [source, target, on])
    return dataset.load(lines, str(found[0][0])) if found else None


@lru_cache(maxsize=1)
def _directory_line_sql() -> str:
    """By hand, as for prices: each order asks, and building the queries took longer than running them."""
    line, directory, document = (
        repositories[name].model._meta.db_table
        for name in (_RATES, "General.Currencies.CurrencyDirectories", "General.Documents.Documents")
    )
    return (
        f'SELECT l.id FROM "{line}" l JOIN "{directory}" d ON d.document_ptr_id = l.currency_directory_id '  # noqa: S608  (names are the model's)
        f'JOIN "{document}" h ON h.id = d.document_ptr_id '
        "WHERE l.from_currency_id = %s AND d.to_currency_id = %s AND h.document_date <= %s AND NOT h.void "
        "ORDER BY h.document_date DESC, l.id LIMIT 1"
    )


def _prices(dataset: UnitOfWork, product: str, currency: str) -> list[Price]:
    prepared = _prepared_prices(dataset)
    if (currency, product) not in prepared:
        prepared[currency, product] = _load_prices(dataset, {product}, currency)[product]
    return prepared[currency, product]


def _prepared_prices(dataset: UnitOfWork) -> dict[tuple[str, str], list[Price]]:
    """(currency, product) → prices."""
    return per_commit(dataset, "prices", dict[tuple[str, str], list[Price]])


def _load_prices(dataset: UnitOfWork, products: Iterable[str], currency: str) -> dict[str, list[Price]]:
    """Product → its active prices in the currency; what this dataset has changed goes before what is stored."""
    found: dict[str, list[Price]] = {product: [] for product in products}
    dataset.load_pending(_PRICES)
    pending = {record.id: record for record in dataset.changed() if record.repository.name == _PRICES}
    for id, values in _stored_prices(list(found), currency):
        if id not in pending:
            found[values["product_id"]].append(_price(id, values))
    for record in pending.values():
        if record.product_id in found and record.is_active and not record.is_deleted:
            row = {name: getattr(record, name) for name in (*_PRICE_MEMBERS, *_BUYERS)}
            found[record.product_id].append(_price(record.id, row))
    return found


def _stored_prices(products: Sequence[str], currency: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(guid, Python name → value) of the active prices of the products in the currency."""
    repository = repositories[_PRICES]
    names = {name: repository.by_python_name[name.removesuffix("_id")].name for name in _PRICE_AND_BUYERS}
    for part in chunks(products):
        marks = ", ".join(["%s"] * len(part))
        condition = f"product_id IN ({marks}) AND currency_id = %s AND is_active"
        for id, row in storage_of(repository).load_where(condition, [*part, currency]).items():
            yield id, {name: row.values[api_name] for name, api_name in names.items()}


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


def _optional(record: Record, reference: str) -> str | None:
    """The guid that a reference holds, where the repository has it at all."""
    if reference.removesuffix("_id") not in record.repository.by_python_name:
        return None
    value: str | None = getattr(record, reference)
    return value


# --- amounts ------------------------------------------------------------------------------------------------------


def amount_of_line(line: Record) -> None:
    """Calculation: quantity × unit price, less the discounts, at the currency's precision."""
    if line.quantity is None or line.unit_price is None:
        return
    exact = line_amount(
        line.quantity,
        line.unit_price,
        line.line_standard_discount_percent or Decimal(0),
        line.line_custom_discount_percent or Decimal(0),
    )
    header = line.parent
    currency = header.document_currency if header is not None else None
    depend(line, "line_amount", round_amount(exact, currency.currency_sign if currency is not None else None))


def totals(header: Record) -> None:
    """Calculation: the sum of the lines, and with the additional amounts what is to be paid."""
    total = sum((line.line_amount or Decimal(0) for line in header.children("Lines")), Decimal(0))
    additional = Decimal(0)
    for amount in header.children("DocumentAmounts"):
        if amount.input_amount is not None:
            additional += amount.input_amount
        elif amount.input_percent is not None:
            currency = header.document_currency
            additional += round_amount(
                total * amount.input_percent, currency.currency_sign if currency is not None else None
            )
    header.total_line_amount = total
    header.amount_to_pay = total + additional


TRADE_LINE_CALCULATIONS = (
    Calculation(copy_product, ("Product",)),
    Calculation(quantities_in_base, ("Product", "Quantity", "QuantityUnit")),
    Calculation(price_of_product, ("Product", "QuantityUnit")),
    Calculation(price_for_quantity, ("Quantity",)),
    Calculation(amount_of_line, ("Quantity", "UnitPrice", "LineStandardDiscountPercent", "LineCustomDiscountPercent")),
)
TOTAL_OF_HEADER = Calculation(
    totals,
    ("Lines", "Lines.LineAmount", "DocumentAmounts", "DocumentAmounts.InputAmount", "DocumentAmounts.InputPercent"),
    always=True,
)
