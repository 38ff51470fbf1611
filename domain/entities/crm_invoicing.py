"""Crm.Invoicing: invoices."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.entities import trade_documents
from domain.entities.behaviour import depend, fill, line_numbered
from domain.entities.enums import DELIVERY_TERMS, TRANSACTION_NATURE, TRANSPORT_MODE
from domain.entities.general_documents import Document, check_parent_editable
from domain.entities.master_detail import from_header, header_calculations, marks_header
from domain.entities.trade_lines import (
    TOTAL_OF_HEADER,
    TOTALLED,
    TRADE_LINE_CALCULATIONS,
    description_from_product,
    lines_prepared,
    unit_fits_product,
    unit_from_product,
)
from domain.model.attributes import Calculation, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import (
    AmountField,
    EnumField,
    ExactDecimalField,
    MultilanguageField,
    QuantityField,
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


class InvoiceLine(Entity):
    """One item of an invoice."""

    # The model facts name the header twice, as the owner and as "Document"; one reference is enough.
    invoice = ReferenceField("Invoice", owner=True, covers=TOTALLED)
    business_reason = EnumField(INVOICING_BUSINESS_REASON, default="Shipment")
    delivery_terms_code = EnumField(DELIVERY_TERMS, null=True, blank=True)
    intrastat_apply_date = models.DateTimeField(null=True, blank=True)
    intrastat_transaction_nature_code = EnumField(TRANSACTION_NATURE, max_length=96, null=True, blank=True)
    intrastat_transport_mode_code = EnumField(TRANSPORT_MODE, null=True, blank=True)
    line_amount = AmountField(14, 2, currency="Invoice.DocumentCurrency")
    line_custom_discount_percent = ExactDecimalField(7, 6, default=Decimal(0))
    line_no = models.IntegerField()
    line_standard_discount_percent = ExactDecimalField(7, 6, default=Decimal(0))
    notes = models.CharField(max_length=254, null=True, blank=True)
    parent_line_no = models.IntegerField(null=True, blank=True)
    product_description = MultilanguageField(max_length=254)
    quantity = QuantityField(12, 3, unit="QuantityUnit", default=Decimal(1))
    quantity_base = QuantityField(12, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    sales_order_amount = ExactDecimalField(14, 2, null=True, blank=True)
    standard_quantity_base = QuantityField(12, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    unit_price = AmountField(14, 5, currency="Invoice.DocumentCurrency")
    line_deal_type = ReferenceField("DealType", null=True, blank=True)
    parent_document = ReferenceField("Document", null=True, blank=True)
    parent_sales_order_line = ReferenceField("SalesOrderLine", null=True, blank=True)
    product = ReferenceField("Product", null=True, blank=True, covers=(*TOTALLED, "invoice"))
    quantity_unit = ReferenceField("MeasurementUnit")
    sales_order = ReferenceField("SalesOrder", null=True, blank=True)


@repositories.register
class InvoiceLines(Repository[InvoiceLine]):
    """Declares Crm.Invoicing.InvoiceLines."""

    name = "Crm.Invoicing.InvoiceLines"
    display_format = "{LineNo}. {Invoice.DocumentNo} {Invoice.DocumentType.TypeName:T}"
    search_members = ("invoice.document_no",)
    late_defaults = (
        line_numbered("line_no", "Lines"),
        from_header(INVOICE_AGREEMENTS),
        unit_from_product,
        description_from_product,
    )
    calculations = (
        *TRADE_LINE_CALCULATIONS,
        *marks_header("Lines", *(of_line for _, of_line in INVOICE_AGREEMENTS)),
        *marks_header("Lines", "LineAmount"),
    )
    validations = (
        check_parent_editable,
        unit_fits_product,
    )
    read_only = frozenset({"standard_quantity_base"})


class Invoice(Document):
    """What a customer is asked to pay."""

    amount_to_pay = AmountField(18, 2, currency="DocumentCurrency", null=True, blank=True)
    apply_date = models.DateField()
    automatic_order_linking = models.BooleanField(default=False)
    credit_note_description = models.CharField(max_length=254, null=True, blank=True)
    delivery_date = models.DateTimeField(null=True, blank=True)
    delivery_terms_code = EnumField(DELIVERY_TERMS, null=True, blank=True)
    intrastat_transaction_nature_code = EnumField(TRANSACTION_NATURE, max_length=96, null=True, blank=True)
    intrastat_transport_mode_code = EnumField(TRANSPORT_MODE, null=True, blank=True)
    is_single_execution = models.BooleanField(default=False)
    is_valid_field = models.BooleanField(default=False)
    notes = models.CharField(max_length=254, null=True, blank=True)
    payment_due_date = models.DateTimeField(null=True, blank=True)
    payment_due_start_date = models.DateTimeField(null=True, blank=True)
    payment_type_description = MultilanguageField(max_length=254, null=True, blank=True)
    total_line_amount = AmountField(18, 2, currency="DocumentCurrency", null=True, blank=True)
    vat_cash_reporting_mode = models.BooleanField(default=False)
    vat_notes = models.CharField(max_length=254, null=True, blank=True)
    credit_note_original_invoice = ReferenceField("self", null=True, blank=True)
    customer = ReferenceField("Customer")
    deal_type = ReferenceField("DealType", null=True, blank=True)
    document_currency = ReferenceField("Currency")
    payment_type = ReferenceField("PaymentType", null=True, blank=True)


def applied_on_document_date(invoice: Record) -> None:
    """Late default."""
    fill(invoice, "apply_date", invoice.document_date)


def description_of_payment_type(invoice: Record) -> None:
    """Calculation: what the invoice says about paying."""
    if (payment_type := invoice.payment_type) is not None:
        depend(invoice, "payment_type_description", payment_type.name)


@repositories.register
class Invoices(Repository[Invoice]):
    """Declares Crm.Invoicing.Invoices."""

    name = "Crm.Invoicing.Invoices"
    code_member = "document_no"
    display_format = "{DocumentType.TypeName:T} {DocumentNo}{StateTagsAttribute}"
    search_members = ("document_no",)
    children = (Child("Lines", "Crm.Invoicing.InvoiceLines"),)
    late_defaults = (
        trade_documents.terms_of_new,
        trade_documents.currency_of_company,
        applied_on_document_date,
        lines_prepared("Crm.Invoicing.InvoiceLines"),
    )
    calculations = (
        Calculation(trade_documents.terms_of_customer, ("Customer",)),
        Calculation(trade_documents.dates_of_customer, ("DocumentDate",)),
        Calculation(description_of_payment_type, ("PaymentType",)),
        *header_calculations("Lines", INVOICE_AGREEMENTS),
        TOTAL_OF_HEADER,
    )
    read_only = frozenset({"amount_to_pay", "is_single_execution", "is_valid_field", "total_line_amount"})
    calculated = frozenset({"amount_to_pay", "total_line_amount"})
    api_names = {"vat_cash_reporting_mode": "VATCashReportingMode", "vat_notes": "VATNotes"}
    is_document = True
