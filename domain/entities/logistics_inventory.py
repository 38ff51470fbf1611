"""Logistics.Inventory: stores and lots."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import company_from_context, next_free_number, numbered
from domain.entities.creation_and_update import TRACKED_ATTRIBUTES, Tracked, track_creation_and_update
from domain.entities.general_contacts import Party
from domain.model.attributes import Calculation, Child, FromSequence
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, ExactDecimalField, GuidField, MultilanguageField, ReferenceField
from foundation.models import AggregateRoot, Entity, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


LOT_STATUS = EnumType(
    "Logistics.Inventory.LotsRepository.Status",
    {"FreeToUse": 0, "BlockedForDocument": -3, "BlockedForParty": -2, "BlockedForInspection": -1},
)


class Lot(AggregateRoot):
    """A lot: goods of one product that were received together and are traced together."""

    number = models.CharField(max_length=30, db_index=True)
    alcoholic_strength = ExactDecimalField(5, 2, default=Decimal(0))
    description = MultilanguageField(max_length=254, null=True, blank=True)
    expiry_date = models.DateTimeField(null=True, blank=True)
    license_no = models.CharField(max_length=50, null=True, blank=True)
    production_batch_id = GuidField(null=True, blank=True)
    purchase_lot_number = models.CharField(max_length=30, null=True, blank=True)
    receipt_date = models.DateField(null=True, blank=True)
    status = EnumField(LOT_STATUS, default="FreeToUse")
    blocked_for_document = ReferenceField("Document", null=True, blank=True)
    blocked_for_party = ReferenceField("Party", null=True, blank=True)
    certificate_document = ReferenceField("Document", null=True, blank=True)
    product = ReferenceField("Product")

    class Meta:
        constraints = [unique("lot", "product", "number")]


@FromSequence
def number_of_product(lot: Record) -> None:
    """Late default: the next lot number of the product."""
    if not lot.number and lot.product_id is not None:
        lot.number = next_free_number(lot, "number", f"lots:{lot.product_id}", product_id=lot.product_id)


@repositories.register
class Lots(Repository[Lot]):
    name = "Logistics.Inventory.Lots"
    base_table = "Inv_Lots"
    code_member = "number"
    filled_late = frozenset({"number"})
    late_defaults = (number_of_product,)
    read_only = frozenset({"receipt_date"})


class StoreBin(Entity):
    """A storage place inside a store, such as a shelf."""

    store = ReferenceField("Store", owner=True)
    name = models.CharField(max_length=254)
    active = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)
    blocked_for_party = ReferenceField("Party", null=True, blank=True)


@repositories.register
class StoreBins(Repository[StoreBin]):
    name = "Logistics.Inventory.StoreBins"
    base_table = "Inv_Store_Bins"
    name_member = "name"


class Store(Tracked, Party):
    """A store of goods."""

    code = models.CharField(max_length=16)
    default_supply_store_id = GuidField(null=True, blank=True)
    name = MultilanguageField(max_length=254)
    number_of_dimensions = models.IntegerField(default=0)
    schema_xml = models.TextField(null=True, blank=True)
    unmanaged = models.BooleanField(default=True)
    currency = ReferenceField("Currency", null=True, blank=True)
    default_store_bin = ReferenceField("StoreBin", null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)
    parent = ReferenceField("self", null=True, blank=True)
    responsible_party = ReferenceField("Party", null=True, blank=True)

    class Meta:
        constraints = [unique("store", "code")]


def name_of_store(store: Record) -> None:
    """Calculation: the party's name is the store's."""
    store.party_name = store.name


@repositories.register
class Stores(Repository[Store]):
    name = "Logistics.Inventory.Stores"
    base_table = "Inv_Stores"
    code_member = "code"
    name_member = "party_name"
    children = (Child("Bins", "Logistics.Inventory.StoreBins"),)
    filled_late = frozenset({"code"})
    late_defaults = (
        numbered("code", "stores", width=3),
        company_from_context,
        track_creation_and_update,
    )
    calculations = (Calculation(name_of_store, ("Name",), always=True),)
    read_only = TRACKED_ATTRIBUTES
    api_names = {"schema_xml": "SchemaXML"}
