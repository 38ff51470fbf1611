"""Crm.Presales: offers."""

from __future__ import annotations

from decimal import Decimal

from django.db import models

from domain.entities import trade_documents
from domain.entities.behaviour import line_numbered
from domain.entities.general_documents import Document, check_parent_editable
from domain.entities.master_detail import from_header, header_calculations, marks_header
from domain.entities.trade_lines import (
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
from foundation.fields import AmountField, ExactDecimalField, MultilanguageField, QuantityField, ReferenceField
from foundation.models import Entity

#: Header attribute → line attribute (spec 08, 8.4, master/detail attributes).
OFFER_AGREEMENTS = (
    ("RequiredDeliveryDate", "RequiredDeliveryDate"),
    ("EndCustomerParty", "LineEndCustomerParty"),
)


class OfferLine(Entity):
    """One product of an offer."""

    # The model facts name the header twice, as the owner and as "Document"; one reference is enough.
    offer = ReferenceField("Offer", owner=True, covers=TOTALLED)
    choice_group_name = models.CharField(max_length=60, null=True, blank=True)
    delivery_term_days = models.IntegerField(default=0)
    guarantee_period_days = models.IntegerField(null=True, blank=True)
    is_selected = models.BooleanField(default=True)
    line_amount = AmountField(14, 2, currency="Offer.DocumentCurrency")
    line_custom_discount_percent = ExactDecimalField(7, 6, default=Decimal(0))
    line_no = models.IntegerField()
    line_standard_discount_percent = ExactDecimalField(7, 6, default=Decimal(0))
    notes = models.TextField(null=True, blank=True)
    product_description = MultilanguageField(max_length=254)
    quantity = QuantityField(12, 3, unit="QuantityUnit", default=Decimal(1))
    quantity_base = QuantityField(12, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    required_delivery_date = models.DateField(null=True, blank=True)
    standard_quantity_base = QuantityField(12, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    unit_price = AmountField(14, 5, currency="Offer.DocumentCurrency")
    variant = models.CharField(max_length=60, null=True, blank=True)
    line_end_customer_party = ReferenceField("Party", null=True, blank=True)
    product = ReferenceField("Product", covers=(*TOTALLED, "offer"))
    product_code = ReferenceField("ProductCode", null=True, blank=True)
    product_price = ReferenceField("ProductPrice", null=True, blank=True)
    quantity_unit = ReferenceField("MeasurementUnit")


@repositories.register
class OfferLines(Repository[OfferLine]):
    """Declares Crm.Presales.OfferLines."""

    name = "Crm.Presales.OfferLines"
    display_format = "{LineNo}. {Offer.DocumentNo} {Offer.DocumentType.TypeName:T}"
    search_members = ("offer.document_no",)
    late_defaults = (
        line_numbered("line_no", "Lines"),
        from_header(OFFER_AGREEMENTS),
        unit_from_product,
        description_from_product,
    )
    calculations = (
        *TRADE_LINE_CALCULATIONS,
        *marks_header("Lines", *(of_line for _, of_line in OFFER_AGREEMENTS)),
    )
    validations = (
        check_parent_editable,
        unit_fits_product,
    )
    read_only = frozenset({"line_standard_discount_percent", "quantity_base", "standard_quantity_base"})


class Offer(Document):
    """What was offered to a prospective or present customer."""

    accepted_on = models.DateTimeField(null=True, blank=True)
    is_single_execution = models.BooleanField(default=False)
    notes = models.CharField(max_length=254, null=True, blank=True)
    payment_due_date = models.DateTimeField(null=True, blank=True)
    required_delivery_date = models.DateField(null=True, blank=True)
    valid_till = models.DateTimeField(null=True, blank=True)
    customer = ReferenceField("Customer", null=True, blank=True)
    document_currency = ReferenceField("Currency")
    end_customer_party = ReferenceField("Party", null=True, blank=True)
    payment_type = ReferenceField("PaymentType", null=True, blank=True)
    price_list = ReferenceField("PriceList", null=True, blank=True)
    recipient_person = ReferenceField("Person", null=True, blank=True)
    sales_person = ReferenceField("SalesPerson", null=True, blank=True)
    ship_to_customer = ReferenceField("Customer", null=True, blank=True)
    store = ReferenceField("Store", null=True, blank=True)


@repositories.register
class Offers(Repository[Offer]):
    """Declares Crm.Presales.Offers."""

    name = "Crm.Presales.Offers"
    code_member = "document_no"
    display_format = "{DocumentType.TypeName:T} {DocumentNo}{StateTagsAttribute}"
    search_members = ("document_no",)
    children = (Child("Lines", "Crm.Presales.OfferLines"),)
    late_defaults = (
        trade_documents.terms_of_new,
        trade_documents.currency_of_company,
        lines_prepared("Crm.Presales.OfferLines"),
    )
    calculations = (
        Calculation(trade_documents.terms_of_customer, ("Customer",)),
        Calculation(trade_documents.dates_of_customer, ("DocumentDate",)),
        *header_calculations("Lines", OFFER_AGREEMENTS),
    )
    read_only = frozenset({"is_single_execution"})
    is_document = True
