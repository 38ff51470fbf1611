"""Systems.Documents: numbers, parties and additional amounts of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import numbered
from domain.model import reference_data
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, ExactDecimalField, MultilanguageField, ReferenceField
from foundation.models import AggregateRoot, Entity, unique

if TYPE_CHECKING:
    pass

DOCUMENT_AMOUNT_TYPE_ALLOWED_DIRECTIONS = EnumType(
    "Systems.Documents.DocumentAmountTypesRepository.AllowedDirections",
    {"AllowAll": 0, "AllowOnlyPositive": 1, "AllowOnlyNegative": -1},
)

DOCUMENT_AMOUNT_TYPE_DISTRIBUTE_BY = EnumType(
    "Systems.Documents.DocumentAmountTypesRepository.DistributeBy",
    {
        "Amount": 0,
        "Measurement": 1,
        "ProductDefinition": 2,
        "DealType": 3,
        "LineDiscount": 4,
        "BonusProgram": 5,
        "PromotionalPackage": 6,
    },
)


class DocumentAmountType(AggregateRoot):
    """A kind of additional amounts."""

    amount_type_code = models.CharField(max_length=16)
    amount_type_name = MultilanguageField(max_length=128)
    add_to_customer = models.BooleanField(default=True)
    add_to_line = models.BooleanField(default=True)
    allowed_directions = EnumField(DOCUMENT_AMOUNT_TYPE_ALLOWED_DIRECTIONS, null=True, blank=True, default="AllowAll")
    amount_input_allowed = models.BooleanField(default=False)
    base_on_lines = models.BooleanField(default=True)
    default_percent = ExactDecimalField(7, 6, null=True, blank=True)
    description = models.CharField(max_length=254, null=True, blank=True)
    distribute_by = EnumField(DOCUMENT_AMOUNT_TYPE_DISTRIBUTE_BY, default="Amount")
    is_active = models.BooleanField(default=True)
    percent_input_allowed = models.BooleanField(default=True)
    round_scale = models.IntegerField(null=True, blank=True)
    unit_amount_input_allowed = models.BooleanField(default=False)
    distribute_by_measurement_category = ReferenceField("MeasurementCategory", null=True, blank=True)

    class Meta:
        constraints = [unique("document_amount_type", "amount_type_code")]


@repositories.register
class DocumentAmountTypes(Repository[DocumentAmountType]):
    name = "Systems.Documents.DocumentAmountTypes"
    base_table = "Gen_Document_Amount_Types"
    category = "Settings"
    code_member = "amount_type_code"
    name_member = "amount_type_name"
    children = (Child("Dependencies", "Systems.Documents.DocumentAmountTypeDependencies"),)
    filled_late = frozenset({"amount_type_code"})
    late_defaults = (numbered("amount_type_code", "document-amount-types", width=2),)
    old_names = {"General.DocumentAmountTypes": "24.1.5.35"}


class DocumentAmountTypeDependency(Entity):
    """An amount type that must be calculated before another."""

    document_amount_type = ReferenceField("DocumentAmountType", owner=True)
    depends_on_document_amount_type = ReferenceField("DocumentAmountType")


@repositories.register
class DocumentAmountTypeDependencies(Repository[DocumentAmountTypeDependency]):
    name = "Systems.Documents.DocumentAmountTypeDependencies"
    base_table = "Gen_Document_Amount_Type_Dependencies"
    name_member = "document_amount_type.amount_type_name"
    old_names = {"General.DocumentAmountTypeDependencies": "24.1.5.35"}


class DocumentPartyRole(AggregateRoot):
    """The role of a further party in a document."""

    code = models.CharField(max_length=32)
    name = MultilanguageField(max_length=254)
    notes = models.TextField(null=True, blank=True)

    class Meta:
        constraints = [unique("document_party_role", "code")]


@repositories.register
class DocumentPartyRoles(Repository[DocumentPartyRole]):
    name = "Systems.Documents.DocumentPartyRoles"
    base_table = "Gen_Document_Party_Roles"
    code_member = "code"
    name_member = "name"
    old_names = {"General.DocumentPartyRoles": "24.1.5.35"}


class Sequence(AggregateRoot):
    """A named sequence of document numbers."""

    name = models.CharField(max_length=50)
    simultaneous_transactions = models.BooleanField(default=False)


@repositories.register
class Sequences(Repository[Sequence]):
    name = "Systems.Documents.Sequences"
    base_table = "Gen_Sequences"
    cache_version = reference_data.CACHE_VERSION
    category = "Settings"
    name_member = "name"
    children = (Child("Generators", "Systems.Documents.SequenceGenerators"),)
    old_names = {"Systems.Core.Sequences": "24.1.5.35"}


class SequenceGenerator(Entity):
    """The position of a sequence for one company, location or person."""

    sequence = ReferenceField("Sequence", owner=True)
    allow_explicit_numbering = models.BooleanField(default=False)
    next_value = models.CharField(max_length=16, default="0000000001")
    sequence_priority = models.IntegerField(default=1)
    enterprise_company = ReferenceField("EnterpriseCompany")
    enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)
    responsible_person = ReferenceField("Person", null=True, blank=True)


@repositories.register
class SequenceGenerators(Repository[SequenceGenerator]):
    name = "Systems.Documents.SequenceGenerators"
    base_table = "Gen_Sequence_Generators"
    name_member = "sequence.name"
    old_names = {"General.SequenceGenerators": "24.1.5.35"}
