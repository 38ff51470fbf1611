"""Crm.Sales: customers and their orders."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.entities import trade_documents
from domain.entities.behaviour import (
    company_from_context,
    dates_in_order,
    fill,
    line_numbered,
    numbered,
    stamped_by_user,
)
from domain.entities.defaults import current_day
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
from foundation.fields import (
    AmountField,
    EnumField,
    ExactDecimalField,
    MultilanguageField,
    QuantityField,
    ReferenceField,
)
from foundation.models import AggregateRoot, Entity

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: Header attribute → line attribute (spec 08, 8.4, master/detail attributes).
SALES_ORDER_AGREEMENTS = (
    ("Store", "LineStore"),
    ("RequiredDeliveryDate", "RequiredDeliveryDate"),
    ("DeliveryTermsCode", "DeliveryTermsCode"),
    ("IntrastatTransactionNatureCode", "IntrastatTransactionNatureCode"),
    ("IntrastatTransportModeCode", "IntrastatTransportModeCode"),
    ("DealType", "LineDealType"),
    ("EndCustomerParty", "LineEndCustomerParty"),
    ("FromDate", "LineFromDate"),
    ("ToDate", "LineToDate"),
)


class CustomerType(AggregateRoot):
    """A kind of customers."""

    name = MultilanguageField(max_length=254)
    is_active = models.BooleanField(default=True)


@repositories.register
class CustomerTypes(Repository[CustomerType]):
    """Declares Crm.Sales.CustomerTypes."""

    name = "Crm.Sales.CustomerTypes"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("name",)
    old_names = ("Crm.CustomerTypes",)


class Customer(AggregateRoot):
    """A party that buys from an enterprise company."""

    number = models.CharField(max_length=16, null=True, blank=True)
    active = models.BooleanField(default=True)
    allow_use_as_primary_customer = models.BooleanField(default=False)
    allow_use_as_ship_to_customer = models.BooleanField(default=False)
    creation_time = models.DateTimeField(null=True, blank=True)
    creation_user = models.CharField(max_length=64, null=True, blank=True)
    credit_limit = AmountField(18, 2, currency="EnterpriseCompany.BaseCurrency", null=True, blank=True)
    default_delivery_term_days = models.IntegerField(default=0)
    default_payment_start_days = models.IntegerField(default=0)
    default_payment_term_days = models.IntegerField(default=0)
    from_date = models.DateTimeField(null=True, blank=True, default=current_day)
    grace_period_days = models.IntegerField(default=0)
    persist_sales_orders_lots = models.BooleanField(default=False)
    thru_date = models.DateTimeField(null=True, blank=True)
    update_time = models.DateTimeField(null=True, blank=True)
    update_user = models.CharField(max_length=64, null=True, blank=True)
    customer_type = ReferenceField("CustomerType", null=True, blank=True)
    default_currency = ReferenceField("Currency", null=True, blank=True)
    default_payment_type = ReferenceField("PaymentType", null=True, blank=True)
    default_price_list = ReferenceField("PriceList", null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    party = ReferenceField("Party")
    sales_person = ReferenceField("SalesPerson", null=True, blank=True)
    serviced_by_enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["number"], name="customer_number_key"),
        ]


def currency_of_company(customer: Record) -> None:
    """Late default: customers pay in the base currency of the company."""
    if customer.default_currency_id is None and (company := customer.enterprise_company) is not None:
        fill(customer, "default_currency_id", company.base_currency_id)


@repositories.register
class Customers(Repository[Customer]):
    """Declares Crm.Sales.Customers."""

    name = "Crm.Sales.Customers"
    code_member = "number"
    name_member = "party.party_name"
    display_format = "{Party.PartyName:T}"
    search_members = ("number", "party.party_name")
    late_defaults = (
        company_from_context,
        currency_of_company,
        numbered("number", "customers"),
        stamped_by_user,
    )
    validations = (dates_in_order("from_date", "thru_date"),)
    read_only = frozenset({"creation_time", "creation_user", "update_time", "update_user"})
    old_names = ("Crm.Customers",)


class SalesOrderLine(Entity):
    """One product of a sales order."""

    # The model facts name the header twice, as the owner and as "Document"; one reference is enough.
    sales_order = ReferenceField("SalesOrder", owner=True, covers=TOTALLED)
    apply_trade_conditions = models.BooleanField(default=True)
    delivery_terms_code = EnumField(DELIVERY_TERMS, null=True, blank=True)
    guarantee_period_days = models.IntegerField(null=True, blank=True)
    historical_data_json = models.TextField(null=True, blank=True)
    historical_unit_cost = AmountField(14, 5, currency="SalesOrder.DocumentCurrency", null=True, blank=True)
    intrastat_apply_date = models.DateTimeField(null=True, blank=True)
    intrastat_transaction_nature_code = EnumField(TRANSACTION_NATURE, max_length=96, null=True, blank=True)
    intrastat_transport_mode_code = EnumField(TRANSPORT_MODE, null=True, blank=True)
    level_1_discount_percent = ExactDecimalField(7, 6, null=True, blank=True)
    level_2_discount_percent = ExactDecimalField(7, 6, null=True, blank=True)
    level_3_discount_percent = ExactDecimalField(7, 6, null=True, blank=True)
    line_amount = AmountField(14, 2, currency="SalesOrder.DocumentCurrency")
    line_custom_discount_percent = ExactDecimalField(7, 6, default=Decimal(0))
    line_from_date = models.DateField(null=True, blank=True)
    line_no = models.IntegerField()
    line_standard_discount_percent = ExactDecimalField(7, 6, default=Decimal(0))
    line_to_date = models.DateField(null=True, blank=True)
    notes = models.TextField(null=True, blank=True)
    parent_line_no = models.IntegerField(null=True, blank=True)
    persist_lot = models.BooleanField(default=False)
    product_description = MultilanguageField(max_length=254)
    quantity = QuantityField(12, 3, unit="QuantityUnit", default=Decimal(1))
    quantity_base = QuantityField(12, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    requested_quantity = QuantityField(12, 3, unit="QuantityUnit", null=True, blank=True)
    required_delivery_date = models.DateField(null=True, blank=True)
    standard_quantity_base = QuantityField(12, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    standard_unit_price = AmountField(14, 5, currency="SalesOrder.DocumentCurrency", null=True, blank=True)
    tax_amount = AmountField(12, 2, currency="SalesOrder.DocumentCurrency", null=True, blank=True)
    unit_price = AmountField(14, 5, currency="SalesOrder.DocumentCurrency")
    line_deal_type = ReferenceField("DealType", null=True, blank=True)
    line_end_customer_party = ReferenceField("Party", null=True, blank=True)
    line_store = ReferenceField("Store", null=True, blank=True)
    lot = ReferenceField("Lot", null=True, blank=True)
    parent_document = ReferenceField("Document", null=True, blank=True)
    product = ReferenceField("Product", covers=(*TOTALLED, "sales_order"))
    product_code = ReferenceField("ProductCode", null=True, blank=True)
    product_price = ReferenceField("ProductPrice", null=True, blank=True)
    quantity_unit = ReferenceField("MeasurementUnit")
    return_for_invoice_line = ReferenceField("InvoiceLine", null=True, blank=True)
    return_for_sales_order_line = ReferenceField("self", null=True, blank=True)
    store_bin = ReferenceField("StoreBin", null=True, blank=True)


@repositories.register
class SalesOrderLines(Repository[SalesOrderLine]):
    """Declares Crm.Sales.SalesOrderLines."""

    name = "Crm.Sales.SalesOrderLines"
    display_format = "{LineNo}. {SalesOrder.DocumentNo} {SalesOrder.DocumentType.TypeName:T}"
    search_members = ("sales_order.document_no",)
    late_defaults = (
        line_numbered("line_no", "Lines"),
        from_header(SALES_ORDER_AGREEMENTS),
        unit_from_product,
        description_from_product,
    )
    calculations = (
        *TRADE_LINE_CALCULATIONS,
        *marks_header("Lines", *(of_line for _, of_line in SALES_ORDER_AGREEMENTS)),
        *marks_header("Lines", "LineAmount"),
    )
    validations = (
        check_parent_editable,
        unit_fits_product,
        dates_in_order("line_from_date", "line_to_date"),
    )
    read_only = frozenset(
        {
            "level_1_discount_percent",
            "level_2_discount_percent",
            "level_3_discount_percent",
            "line_standard_discount_percent",
            "standard_quantity_base",
            "standard_unit_price",
        }
    )


class SalesOrder(Document):
    """What a customer ordered."""

    amount_to_pay = AmountField(18, 2, currency="DocumentCurrency", null=True, blank=True)
    apply_trade_conditions = models.BooleanField(null=True, blank=True, default=True)
    credit_limit_override = models.BooleanField(default=False)
    customer_purchase_order_date = models.DateField(null=True, blank=True)
    customer_purchase_order_no = models.CharField(max_length=20, null=True, blank=True, db_index=True)
    delivery_terms_code = EnumField(DELIVERY_TERMS, null=True, blank=True)
    fiscal_sales_number = models.CharField(max_length=32, null=True, blank=True)
    from_date = models.DateField(null=True, blank=True)
    intrastat_transaction_nature_code = EnumField(TRANSACTION_NATURE, max_length=96, null=True, blank=True)
    intrastat_transport_mode_code = EnumField(TRANSPORT_MODE, null=True, blank=True)
    invoice_no = models.CharField(max_length=32, null=True, blank=True)
    is_single_execution = models.BooleanField(default=False)
    is_valid_field = models.BooleanField(default=False)
    payment_due_date = models.DateTimeField(null=True, blank=True)
    payment_due_start_date = models.DateTimeField(null=True, blank=True)
    required_delivery_date = models.DateField(null=True, blank=True)
    to_date = models.DateField(null=True, blank=True)
    total_line_amount = AmountField(18, 2, currency="DocumentCurrency", null=True, blank=True)
    customer = ReferenceField("Customer")
    deal_type = ReferenceField("DealType", null=True, blank=True)
    document_currency = ReferenceField("Currency")
    end_customer_party = ReferenceField("Party", null=True, blank=True)
    payment_type = ReferenceField("PaymentType", null=True, blank=True)
    price_list = ReferenceField("PriceList", null=True, blank=True)
    return_for_invoice = ReferenceField("Invoice", null=True, blank=True)
    return_for_sales_order = ReferenceField("self", null=True, blank=True)
    sales_person = ReferenceField("SalesPerson", null=True, blank=True)
    ship_to_customer = ReferenceField("Customer", null=True, blank=True)
    ship_to_party_contact_mechanism = ReferenceField("PartyContactMechanism", null=True, blank=True)
    store = ReferenceField("Store", null=True, blank=True)


@repositories.register
class SalesOrders(Repository[SalesOrder]):
    """Declares Crm.Sales.SalesOrders."""

    name = "Crm.Sales.SalesOrders"
    code_member = "document_no"
    display_format = "{DocumentType.TypeName:T} {DocumentNo}{StateTagsAttribute}"
    search_members = ("document_no",)
    children = (Child("Lines", "Crm.Sales.SalesOrderLines"),)
    late_defaults = (
        trade_documents.terms_of_new,
        trade_documents.currency_of_company,
        lines_prepared("Crm.Sales.SalesOrderLines"),
    )
    calculations = (
        Calculation(trade_documents.terms_of_customer, ("Customer",)),
        Calculation(trade_documents.dates_of_customer, ("DocumentDate",)),
        *header_calculations("Lines", SALES_ORDER_AGREEMENTS),
        TOTAL_OF_HEADER,
    )
    validations = (dates_in_order("from_date", "to_date"),)
    read_only = frozenset(
        {"amount_to_pay", "fiscal_sales_number", "is_single_execution", "is_valid_field", "total_line_amount"}
    )
    calculated = frozenset({"amount_to_pay", "total_line_amount"})
    is_document = True
