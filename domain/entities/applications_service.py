"""Applications.Service: service activities."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import fill, line_numbered, not_negative, set_suggested
from domain.entities.document_editing import check_parent_editable
from domain.entities.general_activities import Activity
from domain.entities.general_documents import DocumentRepository
from domain.entities.line_quantities import quantities_in_base, unit_fits_product, unit_from_product
from domain.entities.master_detail import from_header, header_calculations, marks_header
from domain.model.attributes import Calculation, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.fields import MultilanguageField, QuantityField, ReferenceField
from foundation.models import Entity

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

#: Header attribute → line attribute (spec 08, 8.4, master/detail attributes).
MATERIAL_AGREEMENTS = (("Store", "LineStore"),)


class ServiceActivityMaterial(Entity):
    """Goods consumed in a service activity."""

    # The model facts name the header twice, as the owner and as "Document"; one reference is enough.
    service_activity = ReferenceField("ServiceActivity", owner=True)
    covered_by_guarantee = models.BooleanField(default=False)
    line_no = models.IntegerField()
    quantity = QuantityField(18, 3, unit="QuantityUnit")
    quantity_base = QuantityField(18, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    standard_quantity_base = QuantityField(18, 3, unit="Product.BaseMeasurementCategory.BaseUnit")
    line_store = ReferenceField("Store", null=True, blank=True)
    lot = ReferenceField("Lot", null=True, blank=True)
    product = ReferenceField("Product")
    quantity_unit = ReferenceField("MeasurementUnit")


def one_of_material(material: Record) -> None:
    """Late default: the quantity one."""
    fill(material, "quantity", Decimal(1))


@repositories.register
class ServiceActivityMaterials(Repository[ServiceActivityMaterial]):
    name = "Applications.Service.ServiceActivityMaterials"
    base_table = "Srv_Service_Activity_Materials"
    display_format = "{LineNo}. {ServiceActivity.DocumentNo} {Product}"
    search_members = ("service_activity.document_no",)
    filled_late = frozenset({"line_no", "quantity", "quantity_unit"})
    late_defaults = (
        line_numbered("line_no", "Materials"),
        from_header(MATERIAL_AGREEMENTS),
        one_of_material,
        unit_from_product,
    )
    calculations = (
        Calculation(quantities_in_base, ("Product", "Quantity", "QuantityUnit")),
        *marks_header("Materials", *(of_line for _, of_line in MATERIAL_AGREEMENTS)),
    )
    validations = (
        check_parent_editable,
        unit_fits_product,
        not_negative("quantity"),
    )
    read_only = frozenset({"quantity_base", "standard_quantity_base"})


class ServiceActivityService(Entity):
    """Work done in a service activity."""

    # The model facts name the header twice, as the owner and as "Document"; one reference is enough.
    service_activity = ReferenceField("ServiceActivity", owner=True)
    covered_by_guarantee = models.BooleanField(default=False)
    line_no = models.IntegerField()
    notes = models.CharField(max_length=254, null=True, blank=True)
    quantity = QuantityField(9, 2, default=Decimal(1))
    service_name = models.CharField(max_length=254)
    performed_by_person = ReferenceField("Person", null=True, blank=True)


@repositories.register
class ServiceActivityServices(Repository[ServiceActivityService]):
    name = "Applications.Service.ServiceActivityServices"
    base_table = "Srv_Service_Activity_Services"
    display_format = "{LineNo}. {ServiceActivity.DocumentNo} {ServiceName}"
    search_members = ("service_activity.document_no",)
    filled_late = frozenset({"line_no"})
    late_defaults = (line_numbered("line_no", "Services"),)
    validations = (
        check_parent_editable,
        not_negative("quantity"),
    )


class ServiceActivity(Activity):
    """A visit or other activity that serves a customer."""

    credit_limit_override = models.BooleanField(default=False)
    receiver_person_name = MultilanguageField(max_length=254, null=True, blank=True)
    customer = ReferenceField("Customer")
    location_party_contact_mechanism = ReferenceField("PartyContactMechanism", null=True, blank=True)
    receiver_person = ReferenceField("Person", null=True, blank=True)
    ship_to_customer = ReferenceField("Customer", null=True, blank=True)
    store = ReferenceField("Store", null=True, blank=True)


def party_of_customer(activity: Record) -> None:
    """Calculation: the party of the customer."""
    if (customer := activity.customer) is not None:
        set_suggested(activity, "to_party_id", customer.party_id)


@repositories.register
class ServiceActivities(DocumentRepository[ServiceActivity]):
    name = "Applications.Service.ServiceActivities"
    base_table = "Srv_Service_Activities"
    children = (
        Child("Materials", "Applications.Service.ServiceActivityMaterials"),
        Child("Services", "Applications.Service.ServiceActivityServices"),
    )
    calculations = (
        Calculation(party_of_customer, ("Customer",)),
        *header_calculations("Materials", MATERIAL_AGREEMENTS),
    )
