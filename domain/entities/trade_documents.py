"""What headers of offers, orders and invoices have in common: currency, parties, terms (spec 08, 8.4)."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from domain.entities.behaviour import fill, follow

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


def terms_of_new(header: Record) -> None:
    """Late default: a new document has its customer's terms where the caller gave none."""
    if header.is_new:
        terms_of_customer(header)


def terms_of_customer(header: Record) -> None:
    """Calculation: what the customer brings with them: currency, party, seller, way of paying, price list."""
    customer = header.customer
    if customer is None:
        return
    members = header.repository.by_python_name
    follow(header, "to_party_id", customer.party_id)
    follow(header, "document_currency_id", customer.default_currency_id)
    if "sales_person" in members:
        follow(header, "sales_person_id", customer.sales_person_id)
    if "price_list" in members:
        follow(header, "price_list_id", customer.default_price_list_id)
    follow(header, "payment_type_id", customer.default_payment_type_id)
    dates_of_customer(header)


def days_after(day: datetime.date, days: int) -> datetime.date:
    """The day so many days later, or the last that a date can be."""
    room = (datetime.date.max - day).days
    return day + datetime.timedelta(days=min(days, room))


def dates_of_customer(header: Record) -> None:
    """Calculation: payment and delivery dates, days of the customer's terms after the document's date."""
    customer, start = header.customer, header.document_date
    if customer is None or start is None:
        return
    members = header.repository.by_python_name
    payment_start = days_after(start, customer.default_payment_start_days)
    if "payment_due_start_date" in members:
        follow(header, "payment_due_start_date", _at_midnight(payment_start))
    due = days_after(payment_start, customer.default_payment_term_days)
    follow(header, "payment_due_date", _at_midnight(due))
    # Lines with dates of their own decide about the header's.
    if "required_delivery_date" in members and not any(
        line.required_delivery_date is not None and line.required_delivery_date != header.required_delivery_date
        for line in header.children("Lines")
    ):
        follow(header, "required_delivery_date", days_after(start, customer.default_delivery_term_days))


def currency_of_company(header: Record) -> None:
    """Late default, after the customer's: the base currency of the company."""
    if header.document_currency_id is None and (company := header.enterprise_company) is not None:
        fill(header, "document_currency_id", company.base_currency_id)


def _at_midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), tzinfo=datetime.UTC)
