"""Crm.Invoicing: invoices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import fill, set_computed
from domain.entities.general_documents import Document, DocumentRepository
from domain.entities.line_prices import lines_prepared
from domain.entities.trade_documents import (
    CALCULATED_TOTALS,
    TERMS_OF_NEW,
    BilledDocument,
    document_calculations,
)
from domain.entities.trade_lines import (
    LINE_PAGE,
    LINE_VALIDATIONS,
    TOTAL_OF_HEADER,
    TOTALLED,
    BilledLine,
    line_calculations,
    line_defaults,
)
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Calculation, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import (
    EnumField,
    ExactDecimalField,
    MultilanguageField,
    ReferenceField,
)
from foundation.models import Entity

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: Header attribute → line attribute (spec 08, 8.4, master/detail attributes).
INVOICE_AGREEMENTS = (
    ("DeliveryTermsCode", "DeliveryTermsCode"),
    ("IntrastatTransactionNatureCode", "IntrastatTransactionNatureCode"),
    ("IntrastatTransportModeCode", "IntrastatTransportModeCode"),
    ("DealType", "LineDealType"),
)


INVOICING_BUSINESS_REASON = EnumType("Crm.Invoicing.InvoicingBusinessReason", {"Payment": 0, "Shipment": 1})


class InvoiceLine(BilledLine, Entity):
    """One item of an invoice."""

    invoice = ReferenceField("Invoice", owner=True, covers=TOTALLED)
    business_reason = EnumField(INVOICING_BUSINESS_REASON, default="Shipment")
    notes = models.CharField(max_length=254, null=True, blank=True)
    sales_order_amount = ExactDecimalField(14, 2, null=True, blank=True)
    parent_sales_order_line = ReferenceField("SalesOrderLine", null=True, blank=True)
    product = ReferenceField("Product", null=True, blank=True, covers=(*TOTALLED, "invoice"))
    sales_order = ReferenceField("SalesOrder", null=True, blank=True)


@repositories.register
class InvoiceLines(Repository[InvoiceLine]):
    name = "Crm.Invoicing.InvoiceLines"
    base_table = "Crm_Invoice_Lines"
    admin = LINE_PAGE
    display_format = "{LineNo}. {Invoice.DocumentNo} {Invoice.DocumentType.TypeName:T}"
    search_members = ("invoice.document_no",)
    filled_late = frozenset(
        {"line_amount", "line_no", "product_description", "quantity_base", "unit_price", "quantity_unit"}
    )
    late_defaults = line_defaults(INVOICE_AGREEMENTS)
    calculations = line_calculations(INVOICE_AGREEMENTS, "LineAmount")
    validations = LINE_VALIDATIONS
    read_only = frozenset({"standard_quantity_base"})


class Invoice(BilledDocument, Document):
    """A request for payment to a customer."""

    apply_date = models.DateField()
    automatic_order_linking = models.BooleanField(default=False)
    credit_note_description = models.CharField(max_length=254, null=True, blank=True)
    delivery_date = models.DateTimeField(null=True, blank=True)
    notes = models.CharField(max_length=254, null=True, blank=True)
    payment_type_description = MultilanguageField(max_length=254, null=True, blank=True)
    vat_cash_reporting_mode = models.BooleanField(default=False)
    vat_notes = models.CharField(max_length=254, null=True, blank=True)
    credit_note_original_invoice = ReferenceField("self", null=True, blank=True)


def applied_on_document_date(invoice: Record) -> None:
    """Late default."""
    fill(invoice, "apply_date", invoice.document_date)


def description_of_payment_type(invoice: Record) -> None:
    """Calculation: the invoice's text about payment."""
    if (payment_type := invoice.payment_type) is not None:
        set_computed(invoice, "payment_type_description", payment_type.name)


@repositories.register
class Invoices(DocumentRepository[Invoice]):
    name = "Crm.Invoicing.Invoices"
    base_table = "Crm_Invoices"
    admin = AdminOptions(columns=("customer", "total_line_amount"), shown_first=frozenset({"total_line_amount"}))
    children = (Child("Lines", "Crm.Invoicing.InvoiceLines"),)
    filled_late = frozenset({"apply_date", "document_currency"})
    late_defaults = (
        *TERMS_OF_NEW,
        applied_on_document_date,
        lines_prepared("Crm.Invoicing.InvoiceLines"),
    )
    calculations = (
        *document_calculations(INVOICE_AGREEMENTS, Calculation(description_of_payment_type, ("PaymentType",))),
        TOTAL_OF_HEADER,
    )
    read_only = frozenset({"amount_to_pay", "is_single_execution", "is_valid_field", "total_line_amount"})
    calculated = CALCULATED_TOTALS
    api_names = {"vat_cash_reporting_mode": "VATCashReportingMode", "vat_notes": "VATNotes"}
