"""Shared declarations of the headers of offers, orders and invoices: currency, parties, terms (spec 08, 8.4)."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import fill, set_suggested
from domain.entities.master_detail import Pair, header_calculations
from domain.entities.trade_lines import IntrastatTerms
from domain.model.attributes import Calculation
from foundation.fields import AmountField, ReferenceField
from foundation.models import SharedAttributes

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


class TradeDocument(SharedAttributes):
    """Attributes of offers, orders and invoices."""

    is_single_execution = models.BooleanField(default=False)
    payment_due_date = models.DateTimeField(null=True, blank=True)
    document_currency = ReferenceField("domain.Currency")
    payment_type = ReferenceField("domain.PaymentType", null=True, blank=True)

    class Meta:
        abstract = True


class SalesDocument(TradeDocument):
    """Attributes of offers and orders."""

    required_delivery_date = models.DateField(null=True, blank=True)
    end_customer_party = ReferenceField("domain.Party", null=True, blank=True)
    price_list = ReferenceField("domain.PriceList", null=True, blank=True)
    sales_person = ReferenceField("domain.SalesPerson", null=True, blank=True)
    ship_to_customer = ReferenceField("domain.Customer", null=True, blank=True)
    store = ReferenceField("domain.Store", null=True, blank=True)

    class Meta:
        abstract = True


class BilledDocument(TradeDocument, IntrastatTerms):
    """Attributes of orders and invoices."""

    amount_to_pay = AmountField(18, 2, currency="DocumentCurrency", null=True, blank=True)
    is_valid_field = models.BooleanField(default=False)
    payment_due_start_date = models.DateTimeField(null=True, blank=True)
    total_line_amount = AmountField(18, 2, currency="DocumentCurrency", null=True, blank=True)
    customer = ReferenceField("domain.Customer")
    deal_type = ReferenceField("domain.DealType", null=True, blank=True)

    class Meta:
        abstract = True


def terms_of_new(header: Record) -> None:
    """Late default: take a new document's missing terms from its customer."""
    if header.is_new:
        terms_of_customer(header)


def terms_of_customer(header: Record) -> None:
    """Calculation: currency, party, sales person, payment type and price list of the customer."""
    customer = header.customer
    if customer is None:
        return
    members = header.repository.by_python_name
    set_suggested(header, "to_party_id", customer.party_id)
    set_suggested(header, "document_currency_id", customer.default_currency_id)
    if "sales_person" in members:
        set_suggested(header, "sales_person_id", customer.sales_person_id)
    if "price_list" in members:
        set_suggested(header, "price_list_id", customer.default_price_list_id)
    set_suggested(header, "payment_type_id", customer.default_payment_type_id)
    dates_of_customer(header)


def days_after(day: datetime.date, days: int) -> datetime.date:
    """The date `days` later, at most the maximum date."""
    room = (datetime.date.max - day).days
    return day + datetime.timedelta(days=min(days, room))


def dates_of_customer(header: Record) -> None:
    """Calculation: payment and delivery dates, by the customer's terms after the document's date."""
    customer, start = header.customer, header.document_date
    if customer is None or start is None:
        return
    members = header.repository.by_python_name
    payment_start = days_after(start, customer.default_payment_start_days)
    if "payment_due_start_date" in members:
        set_suggested(header, "payment_due_start_date", _at_midnight(payment_start))
    due = days_after(payment_start, customer.default_payment_term_days)
    set_suggested(header, "payment_due_date", _at_midnight(due))
    # The dates of the lines, if set, determine the header's.
    if "required_delivery_date" in members and not any(
        line.required_delivery_date is not None and line.required_delivery_date != header.required_delivery_date
        for line in header.children("Lines")
    ):
        set_suggested(header, "required_delivery_date", days_after(start, customer.default_delivery_term_days))


def currency_of_company(header: Record) -> None:
    """Late default, after the customer's: the base currency of the company."""
    if header.document_currency_id is None and (company := header.enterprise_company) is not None:
        fill(header, "document_currency_id", company.base_currency_id)


def _at_midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC)


TERMS_OF_NEW = (terms_of_new, currency_of_company)
CALCULATED_TOTALS = frozenset({"amount_to_pay", "total_line_amount"})


def document_calculations(agreements: Sequence[Pair], *own: Calculation) -> tuple[Calculation, ...]:
    """Calculations of headers. agreements: see domain.entities.master_detail."""
    return (
        Calculation(terms_of_customer, ("Customer",)),
        Calculation(dates_of_customer, ("DocumentDate",)),
        *own,
        *header_calculations("Lines", agreements),
    )
