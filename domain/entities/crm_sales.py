"""Crm.Sales: customers and their orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import (
    company_from_context,
    dates_in_order,
    fill,
    numbered,
)
from domain.entities.creation_and_update import TRACKED_ATTRIBUTES, Tracked, track_creation_and_update
from domain.entities.defaults import current_day
from domain.entities.general_contacts import PARTY_PHONE
from domain.entities.general_documents import Document, DocumentRepository
from domain.entities.line_prices import lines_prepared
from domain.entities.trade_documents import (
    CALCULATED_TOTALS,
    TERMS_OF_NEW,
    BilledDocument,
    SalesDocument,
    document_calculations,
)
from domain.entities.trade_lines import (
    LINE_PAGE,
    LINE_VALIDATIONS,
    TOTAL_OF_HEADER,
    TOTALLED,
    BilledLine,
    SalesLine,
    line_calculations,
    line_defaults,
)
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import (
    AmountField,
    ExactDecimalField,
    MultilanguageField,
    QuantityField,
    ReferenceField,
)
from foundation.models import AggregateRoot, Entity, unique

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
    name = "Crm.Sales.CustomerTypes"
    base_table = "Crm_Customer_Types"
    category = "Settings"
    name_member = "name"
    old_names = {"Crm.CustomerTypes": "25.1.2.28"}


class Customer(Tracked, AggregateRoot):
    """A party that buys from an enterprise company."""

    number = models.CharField(max_length=16, null=True, blank=True)
    active = models.BooleanField(default=True)
    allow_use_as_primary_customer = models.BooleanField(default=False)
    allow_use_as_ship_to_customer = models.BooleanField(default=False)
    credit_limit = AmountField(18, 2, currency="EnterpriseCompany.BaseCurrency", null=True, blank=True)
    default_delivery_term_days = models.IntegerField(default=0)
    default_payment_start_days = models.IntegerField(default=0)
    default_payment_term_days = models.IntegerField(default=0)
    from_date = models.DateTimeField(null=True, blank=True, default=current_day)
    grace_period_days = models.IntegerField(default=0)
    persist_sales_orders_lots = models.BooleanField(default=False)
    thru_date = models.DateTimeField(null=True, blank=True)
    customer_type = ReferenceField("CustomerType", null=True, blank=True)
    default_currency = ReferenceField("Currency", null=True, blank=True)
    default_payment_type = ReferenceField("PaymentType", null=True, blank=True)
    default_price_list = ReferenceField("PriceList", null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    party = ReferenceField("Party")
    sales_person = ReferenceField("SalesPerson", null=True, blank=True)
    serviced_by_enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)

    class Meta:
        constraints = [unique("customer", "number")]


def currency_of_company(customer: Record) -> None:
    """Late default: customers pay in the base currency of the company."""
    if customer.default_currency_id is None and (company := customer.enterprise_company) is not None:
        fill(customer, "default_currency_id", company.base_currency_id)


@repositories.register
class Customers(Repository[Customer]):
    name = "Crm.Sales.Customers"
    base_table = "Crm_Customers"
    code_member = "number"
    name_member = "party.party_name"
    admin = AdminOptions(
        is_subject=True,
        columns=("number", "party", PARTY_PHONE, "customer_type", "sales_person"),
        hints={
            "party": _("A company or a person, which you add first under Contacts and companies."),
            "number": _("Empty: the next number."),
        },
    )
    late_defaults = (
        company_from_context,
        currency_of_company,
        numbered("number", "customers"),
        track_creation_and_update,
    )
    validations = (dates_in_order("from_date", "thru_date"),)
    read_only = TRACKED_ATTRIBUTES
    old_names = {"Crm.Customers": "25.1.2.28"}


class SalesOrderLine(SalesLine, BilledLine, Entity):
    """One product of a sales order."""

    sales_order = ReferenceField("SalesOrder", owner=True, covers=TOTALLED)
    apply_trade_conditions = models.BooleanField(default=True)
    historical_data_json = models.TextField(null=True, blank=True)
    historical_unit_cost = AmountField(14, 5, currency="SalesOrder.DocumentCurrency", null=True, blank=True)
    level_1_discount_percent = ExactDecimalField(7, 6, null=True, blank=True)
    level_2_discount_percent = ExactDecimalField(7, 6, null=True, blank=True)
    level_3_discount_percent = ExactDecimalField(7, 6, null=True, blank=True)
    line_from_date = models.DateField(null=True, blank=True)
    line_to_date = models.DateField(null=True, blank=True)
    persist_lot = models.BooleanField(default=False)
    requested_quantity = QuantityField(12, 3, unit="QuantityUnit", null=True, blank=True)
    standard_unit_price = AmountField(14, 5, currency="SalesOrder.DocumentCurrency", null=True, blank=True)
    tax_amount = AmountField(12, 2, currency="SalesOrder.DocumentCurrency", null=True, blank=True)
    line_store = ReferenceField("Store", null=True, blank=True)
    lot = ReferenceField("Lot", null=True, blank=True)
    product = ReferenceField("Product", covers=(*TOTALLED, "sales_order"))
    return_for_invoice_line = ReferenceField("InvoiceLine", null=True, blank=True)
    return_for_sales_order_line = ReferenceField("self", null=True, blank=True)
    store_bin = ReferenceField("StoreBin", null=True, blank=True)


@repositories.register
class SalesOrderLines(Repository[SalesOrderLine]):
    name = "Crm.Sales.SalesOrderLines"
    base_table = "Crm_Sales_Order_Lines"
    admin = LINE_PAGE
    display_format = "{LineNo}. {SalesOrder.DocumentNo} {SalesOrder.DocumentType.TypeName:T}"
    search_members = ("sales_order.document_no",)
    filled_late = frozenset(
        {"line_amount", "line_no", "product_description", "quantity_base", "unit_price", "quantity_unit"}
    )
    late_defaults = line_defaults(SALES_ORDER_AGREEMENTS)
    calculations = line_calculations(SALES_ORDER_AGREEMENTS, "LineAmount")
    validations = (
        *LINE_VALIDATIONS,
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


class SalesOrder(SalesDocument, BilledDocument, Document):
    """An order of a customer."""

    apply_trade_conditions = models.BooleanField(null=True, blank=True, default=True)
    credit_limit_override = models.BooleanField(default=False)
    customer_purchase_order_date = models.DateField(null=True, blank=True)
    customer_purchase_order_no = models.CharField(max_length=20, null=True, blank=True, db_index=True)
    fiscal_sales_number = models.CharField(max_length=32, null=True, blank=True)
    from_date = models.DateField(null=True, blank=True)
    invoice_no = models.CharField(max_length=32, null=True, blank=True)
    to_date = models.DateField(null=True, blank=True)
    return_for_invoice = ReferenceField("Invoice", null=True, blank=True)
    return_for_sales_order = ReferenceField("self", null=True, blank=True)
    ship_to_party_contact_mechanism = ReferenceField("PartyContactMechanism", null=True, blank=True)


@repositories.register
class SalesOrders(DocumentRepository[SalesOrder]):
    name = "Crm.Sales.SalesOrders"
    base_table = "Crm_Sales_Orders"
    admin = AdminOptions(columns=("customer", "total_line_amount"), shown_first=frozenset({"total_line_amount"}))
    children = (Child("Lines", "Crm.Sales.SalesOrderLines"),)
    filled_late = frozenset({"document_currency"})
    late_defaults = (
        *TERMS_OF_NEW,
        lines_prepared("Crm.Sales.SalesOrderLines"),
    )
    calculations = (*document_calculations(SALES_ORDER_AGREEMENTS), TOTAL_OF_HEADER)
    validations = (dates_in_order("from_date", "to_date"),)
    read_only = frozenset(
        {"amount_to_pay", "fiscal_sales_number", "is_single_execution", "is_valid_field", "total_line_amount"}
    )
    calculated = CALCULATED_TOTALS
