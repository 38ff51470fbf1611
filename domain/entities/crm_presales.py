"""Crm.Presales: offers."""

from __future__ import annotations

from django.db import models

from domain.entities.general_documents import Document, DocumentRepository
from domain.entities.line_prices import lines_prepared
from domain.entities.trade_documents import (
    TERMS_OF_NEW,
    SalesDocument,
    document_calculations,
)
from domain.entities.trade_lines import (
    LINE_PAGE,
    LINE_VALIDATIONS,
    TOTALLED,
    SalesLine,
    line_calculations,
    line_defaults,
)
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import ReferenceField
from foundation.models import Entity

#: Header attribute → line attribute (spec 08, 8.4, master/detail attributes).
OFFER_AGREEMENTS = (
    ("RequiredDeliveryDate", "RequiredDeliveryDate"),
    ("EndCustomerParty", "LineEndCustomerParty"),
)


class OfferLine(SalesLine, Entity):
    """One product of an offer."""

    offer = ReferenceField("Offer", owner=True, covers=TOTALLED)
    choice_group_name = models.CharField(max_length=60, null=True, blank=True)
    delivery_term_days = models.IntegerField(default=0)
    is_selected = models.BooleanField(default=True)
    variant = models.CharField(max_length=60, null=True, blank=True)
    product = ReferenceField("Product", covers=(*TOTALLED, "offer"))


@repositories.register
class OfferLines(Repository[OfferLine]):
    name = "Crm.Presales.OfferLines"
    base_table = "Crm_Offer_Lines"
    admin = LINE_PAGE
    display_format = "{LineNo}. {Offer.DocumentNo} {Offer.DocumentType.TypeName:T}"
    search_members = ("offer.document_no",)
    filled_late = frozenset({"line_amount", "line_no", "product_description", "unit_price", "quantity_unit"})
    late_defaults = line_defaults(OFFER_AGREEMENTS)
    calculations = line_calculations(OFFER_AGREEMENTS)
    validations = LINE_VALIDATIONS
    read_only = frozenset({"line_standard_discount_percent", "quantity_base", "standard_quantity_base"})


class Offer(SalesDocument, Document):
    """An offer to a prospective or present customer."""

    accepted_on = models.DateTimeField(null=True, blank=True)
    notes = models.CharField(max_length=254, null=True, blank=True)
    valid_till = models.DateTimeField(null=True, blank=True)
    customer = ReferenceField("Customer", null=True, blank=True)
    recipient_person = ReferenceField("Person", null=True, blank=True)


@repositories.register
class Offers(DocumentRepository[Offer]):
    name = "Crm.Presales.Offers"
    base_table = "Crm_Offers"
    children = (Child("Lines", "Crm.Presales.OfferLines"),)
    filled_late = frozenset({"document_currency"})
    late_defaults = (
        *TERMS_OF_NEW,
        lines_prepared("Crm.Presales.OfferLines"),
    )
    calculations = document_calculations(OFFER_AGREEMENTS)
    read_only = frozenset({"is_single_execution"})
