"""Shared declarations of the lines of offers, orders and invoices (spec 08, 8.4)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import line_numbered, set_computed
from domain.entities.document_adjustments import corrected_line, is_applied
from domain.entities.document_editing import check_line_editable
from domain.entities.enums import DELIVERY_TERMS, TRANSACTION_NATURE, TRANSPORT_MODE
from domain.entities.line_prices import price_for_quantity, price_of_product
from domain.entities.line_quantities import (
    copy_product,
    description_from_product,
    quantities_in_base,
    unit_fits_product,
    unit_from_product,
)
from domain.entities.master_detail import Pair, from_header, marks_header
from domain.entities.prices import line_amount, round_amount
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Calculation, LateDefault
from foundation.fields import (
    AmountField,
    EnumField,
    ExactDecimalField,
    MultilanguageField,
    QuantityField,
    ReferenceField,
)
from foundation.models import SharedAttributes

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: Attributes that headers and products sum; the indexes of these references cover them (ReferenceField.covers).
TOTALLED = ("line_amount", "quantity_base")


class TradeLine(SharedAttributes):
    """Attributes of the lines of offers, orders and invoices.

    The model facts name the header twice, as the owner and as "Document"; each line declares one reference.
    """

    line_amount = AmountField(14, 2, currency="Owner.DocumentCurrency")
    line_custom_discount_percent = ExactDecimalField(7, 6, default=Decimal(0))
    line_no = models.IntegerField()
    line_standard_discount_percent = ExactDecimalField(7, 6, default=Decimal(0))
    product_description = MultilanguageField(max_length=254)
    quantity = QuantityField(12, 3, unit="QuantityUnit", default=Decimal(1))
    quantity_base = QuantityField(12, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    standard_quantity_base = QuantityField(12, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    unit_price = AmountField(14, 5, currency="Owner.DocumentCurrency")
    quantity_unit = ReferenceField("domain.MeasurementUnit")

    class Meta:
        abstract = True


class SalesLine(TradeLine):
    """Attributes of the lines of offers and orders."""

    guarantee_period_days = models.IntegerField(null=True, blank=True)
    notes = models.TextField(null=True, blank=True)
    required_delivery_date = models.DateField(null=True, blank=True)
    line_end_customer_party = ReferenceField("domain.Party", null=True, blank=True)
    product_code = ReferenceField("domain.ProductCode", null=True, blank=True)
    product_price = ReferenceField("domain.ProductPrice", null=True, blank=True)

    class Meta:
        abstract = True


class IntrastatTerms(SharedAttributes):
    """Attributes of orders, invoices and their lines for the statistics of trade between EU countries."""

    delivery_terms_code = EnumField(DELIVERY_TERMS, null=True, blank=True)
    intrastat_transaction_nature_code = EnumField(TRANSACTION_NATURE, max_length=96, null=True, blank=True)
    intrastat_transport_mode_code = EnumField(TRANSPORT_MODE, null=True, blank=True)

    class Meta:
        abstract = True


class BilledLine(TradeLine, IntrastatTerms):
    """Attributes of the lines of orders and invoices."""

    intrastat_apply_date = models.DateTimeField(null=True, blank=True)
    parent_line_no = models.IntegerField(null=True, blank=True)
    line_deal_type = ReferenceField("domain.DealType", null=True, blank=True)
    parent_document = ReferenceField("domain.Document", null=True, blank=True)

    class Meta:
        abstract = True


def amount_of_line(line: Record) -> None:
    """Calculation: quantity × unit price, less the discounts, rounded to the currency's precision.

    In an adjustment it is the difference by the correction; in an applied adjustment it does not change.
    """
    if line.quantity is None or line.unit_price is None:
        return
    corrected = corrected_line(line)
    if corrected is None:
        set_computed(line, "line_amount", _amount(line, line.quantity, line.unit_price))
    elif line.line_amount is None or not is_applied(line.root):
        after = _amount(corrected, corrected.quantity + line.quantity, corrected.unit_price + line.unit_price)
        set_computed(line, "line_amount", after - (corrected.line_amount or Decimal(0)))


def _amount(line: Record, quantity: Decimal, unit_price: Decimal) -> Decimal:
    exact = line_amount(
        quantity,
        unit_price,
        line.line_standard_discount_percent or Decimal(0),
        line.line_custom_discount_percent or Decimal(0),
    )
    header = line.parent
    currency = header.document_currency if header is not None else None
    return round_amount(exact, currency.currency_sign if currency is not None else None)


def totals(header: Record) -> None:
    """Calculation: the sum of the lines, and the total with the additional amounts."""
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


_CALCULATIONS = (
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
LINE_PAGE = AdminOptions(
    # The columns that users type; the amount is computed.
    row_columns=("product", "quantity", "quantity_unit", "unit_price", "line_custom_discount_percent", "line_amount"),
    hidden=frozenset({"line_amount"}),
    labels={"line_custom_discount_percent": _("Discount"), "quantity_unit": _("Unit")},
)
LINE_VALIDATIONS = (check_line_editable, unit_fits_product)


def line_defaults(agreements: Sequence[Pair]) -> tuple[LateDefault, ...]:
    """Late defaults of lines. agreements: see domain.entities.master_detail."""
    return (
        line_numbered("line_no", "Lines"),
        from_header(agreements),
        unit_from_product,
        description_from_product,
    )


def line_calculations(agreements: Sequence[Pair], *totals: str) -> tuple[Calculation, ...]:
    """Calculations of lines. totals: API names of the attributes that the header sums."""
    return (*_CALCULATIONS, *marks_header("Lines", *(of_line for _, of_line in agreements), *totals))
