"""Systems.Documents: types of documents, their statuses and routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import dates_in_order, entity_names, find_one, line_numbered
from domain.entities.defaults import current_date
from domain.entities.enums import PARENT_DOCUMENT_RELATIONSHIP_TYPE, PRIORITY
from domain.model import reference_data
from domain.model.admin_options import AdminOptions
from domain.model.attributes import Child
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import M, Repository
from foundation import errors
from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.fields import EnumField, ExactDecimalField, GuidField, MultilanguageField, ReferenceField
from foundation.models import AggregateRoot, Entity, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

DOCUMENT_STATE_FLAGS = EnumType(
    "General.Documents.DocumentStateFlags",
    {"New": 1, "Planned": 2, "FirmPlanned": 4, "Released": 8, "Completed": 16, "Adjustment": 32, "Closed": 64},
    flags=True,
)

DOCUMENT_TYPE_NOTIFICATION_STATUS_CHANGE_DIRECTION = EnumType(
    "Systems.Documents.DocumentTypeNotificationsRepository.StatusChangeDirection",
    {"AnyChange": 0, "NoChange": 1, "PositiveChange": 2, "NegativeChange": 3},
)

DOCUMENT_TYPE_TRACK_ATTRIBUTE_CHANGES = EnumType(
    "Systems.Documents.DocumentTypesRepository.TrackAttributeChanges",
    {"Default": 0, "ForceEnable": 1, "ForceDisable": 2},
)

DOCUMENT_TYPE_TRACK_PRINT_IMAGES = EnumType(
    "Systems.Documents.DocumentTypesRepository.TrackPrintImages", {"DoNotTrack": 0, "SaveSourceDataCompressed": 1}
)

ROUTE_ALLOWED_GENERATION_TYPES = EnumType(
    "Systems.Documents.RoutesRepository.AllowedGenerationTypes", {"Auto": 0, "BothAutoAndManually": 1, "Manually": 2}
)

ROUTE_CONNECTED_PARTY_CONDITION = EnumType(
    "Systems.Documents.RoutesRepository.ConnectedPartyCondition",
    {"AnyParty": 0, "ConnectedParty": 1, "UnconnectedParty": 2},
)


class DocumentType(AggregateRoot):
    """A document type with its own numbers, statuses and rules."""

    code = models.CharField(max_length=16)
    type_name = MultilanguageField(max_length=254)
    create_fulfillments_on_completion = models.BooleanField(default=False)
    create_manully = models.BooleanField(default=True)
    description = MultilanguageField(null=True, blank=True)
    disallow_opposite_values_generation = models.BooleanField(default=False)
    entity_name = models.CharField(max_length=64, db_index=True)
    generate_single_document = models.BooleanField(default=False)
    notes = models.CharField(max_length=254, null=True, blank=True)
    schema_xml = models.TextField(null=True, blank=True)
    track_attribute_changes = EnumField(DOCUMENT_TYPE_TRACK_ATTRIBUTE_CHANGES, default="Default")
    track_print_images = EnumField(DOCUMENT_TYPE_TRACK_PRINT_IMAGES, default="SaveSourceDataCompressed")
    transitional_document = models.BooleanField(default=False)
    sequence = ReferenceField("Sequence", null=True, blank=True)

    class Meta:
        constraints = [unique("document_type", "code")]


def entity_name_of_documents(document_type: Record) -> None:
    """Validation: EntityName is a repository of documents, and that of the type's existing documents."""
    if document_type.is_deleted or not (document_type.is_new or document_type.is_changed("entity_name")):
        return
    given = document_type.entity_name
    if _repository_of(document_type) is None:
        hint = near(given, [repository.entity_name for repository in repositories if _has_types(repository)])
        raise errors.BadRequest(errors.UNKNOWN_REPOSITORY, given, hint, target="EntityName")
    if document_type.is_new:
        return
    document = find_one(document_type.dataset, "General.Documents.Documents", document_type_id=document_type.id)
    if document is not None and document.repository.entity_name != given:
        raise errors.Refused(
            errors.DOCUMENT_TYPE_MISMATCH,
            document_type.describe(),
            given,
            document.repository.entity_name,
            target="EntityName",
        )


def _repository_of(document_type: Record) -> Repository[Any] | None:
    """The repository in EntityName."""
    known = repositories.for_entity_name(document_type.entity_name or "")
    return known if known is not None and _has_types(known) else None


def _has_types(repository: Repository[Any]) -> bool:
    return repository.is_document and not repository.abstract


@repositories.register
class DocumentTypes(Repository[DocumentType]):
    name = "Systems.Documents.DocumentTypes"
    base_table = "Gen_Document_Types"
    cache_version = reference_data.CACHE_VERSION
    category = "Settings"
    code_member = "code"
    name_member = "type_name"
    admin = AdminOptions(
        unlisted=frozenset({"entity_name"}),
        repository_names=frozenset({"entity_name"}),
        hints={"entity_name": _("The repository of its documents, for example Crm_Sales_Orders.")},
    )
    late_defaults = (entity_names("EntityName"),)
    validations = (entity_name_of_documents,)
    children = (
        Child("Amounts", "Systems.Documents.DocumentTypeAmounts"),
        Child("DocumentTypeProperties", "Systems.Documents.DocumentTypeProperties"),
        Child("EnterpriseCompanies", "Systems.Documents.DocumentTypeEnterpriseCompanies"),
        Child("Notifications", "Systems.Documents.DocumentTypeNotifications"),
        Child("Printouts", "Systems.Documents.Printouts"),
        Child("Routes", "Systems.Documents.Routes"),
        Child("SecurityConditions", "Systems.Documents.DocumentTypeSecurityConditions"),
        Child("UserStatuses", "Systems.Documents.DocumentTypeUserStatuses"),
    )
    api_names = {"schema_xml": "SchemaXML"}
    old_names = {"General.DocumentTypes": "24.1.5.35"}


class DocumentTypeParts(Repository[M]):
    """Base of the repositories of a document type's parts."""

    name_member = "document_type.entity_name"


class DocumentTypeAmount(Entity):
    """An additional amount of a type's documents."""

    document_type = ReferenceField("DocumentType", owner=True)
    default_percent = ExactDecimalField(7, 6, null=True, blank=True)
    required_from_date = models.DateField(null=True, blank=True)
    required_thru_date = models.DateField(null=True, blank=True)
    user_can_change_input = models.BooleanField(default=True)
    document_amount_type = ReferenceField("DocumentAmountType")


@repositories.register
class DocumentTypeAmounts(DocumentTypeParts[DocumentTypeAmount]):
    name = "Systems.Documents.DocumentTypeAmounts"
    base_table = "Gen_Document_Type_Amounts"
    validations = (dates_in_order("required_from_date", "required_thru_date"),)
    old_names = {"General.DocumentTypeAmounts": "24.1.5.35"}


class DocumentTypeEnterpriseCompany(Entity):
    """An enterprise company that may use a document type."""

    document_type = ReferenceField("DocumentType", owner=True)
    enterprise_company = ReferenceField("EnterpriseCompany")


@repositories.register
class DocumentTypeEnterpriseCompanies(DocumentTypeParts[DocumentTypeEnterpriseCompany]):
    name = "Systems.Documents.DocumentTypeEnterpriseCompanies"
    base_table = "Gen_Document_Type_Enterprise_Companies"
    old_names = {"General.DocumentTypeEnterpriseCompanies": "24.1.5.35"}


class DocumentTypeNotification(Entity):
    """Recipients of mail when documents of a type change state."""

    document_type = ReferenceField("DocumentType", owner=True)
    document_event = models.CharField(max_length=254, default="StateChanging")
    filter_xml = models.TextField(null=True, blank=True)
    state_bit_mask = models.IntegerField(default=0)
    status_change_direction = EnumField(DOCUMENT_TYPE_NOTIFICATION_STATUS_CHANGE_DIRECTION, default="AnyChange")
    to_email_address_list = models.CharField(max_length=2048)
    user_status = ReferenceField("DocumentTypeUserStatus", null=True, blank=True)


@repositories.register
class DocumentTypeNotifications(DocumentTypeParts[DocumentTypeNotification]):
    name = "Systems.Documents.DocumentTypeNotifications"
    base_table = "Gen_Document_Type_Notifications"
    api_names = {"filter_xml": "FilterXML"}
    old_names = {"General.DocumentTypeNotifications": "24.1.5.35"}


class DocumentTypeProperty(Entity):
    """A custom property of a type's documents."""

    document_type = ReferenceField("DocumentType", owner=True)
    default_property_value = models.CharField(max_length=254, null=True, blank=True)
    default_property_value_description = MultilanguageField(max_length=254, null=True, blank=True)
    default_value_id = GuidField(null=True, blank=True)
    line_no = models.IntegerField()
    required = models.BooleanField(default=False)
    required_from_date = models.DateTimeField(null=True, blank=True)
    required_thru_date = models.DateTimeField(null=True, blank=True)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    property = ReferenceField("CustomProperty")


@repositories.register
class DocumentTypeProperties(DocumentTypeParts[DocumentTypeProperty]):
    name = "Systems.Documents.DocumentTypeProperties"
    base_table = "Gen_Document_Type_Properties"
    filled_late = frozenset({"line_no"})
    late_defaults = (line_numbered("line_no", "DocumentTypeProperties"),)
    validations = (dates_in_order("required_from_date", "required_thru_date"),)
    old_names = {"General.DocumentTypeProperties": "24.1.5.35"}


class DocumentTypeSecurityCondition(Entity):
    """The access key of documents that satisfy a condition."""

    document_type = ReferenceField("DocumentType", owner=True)
    condition_filter_xml = models.TextField()
    description = models.CharField(max_length=254)
    priority = EnumField(PRIORITY, default="Medium")


@repositories.register
class DocumentTypeSecurityConditions(DocumentTypeParts[DocumentTypeSecurityCondition]):
    name = "Systems.Documents.DocumentTypeSecurityConditions"
    base_table = "Gen_Document_Type_Security_Conditions"
    old_names = {"General.DocumentTypeSecurityConditions": "24.1.5.35"}


class DocumentTypeUserStatus(Entity):
    """A user-defined step inside a document state."""

    document_type = ReferenceField("DocumentType", owner=True)
    user_status_name = MultilanguageField(max_length=128)
    active = models.BooleanField(default=True)
    display_order = models.IntegerField()
    instructions = MultilanguageField(null=True, blank=True)
    is_exit_status = models.BooleanField(default=True)
    state = EnumField(DOCUMENT_STATE)


@repositories.register
class DocumentTypeUserStatuses(Repository[DocumentTypeUserStatus]):
    name = "Systems.Documents.DocumentTypeUserStatuses"
    base_table = "Gen_Document_Type_User_Statuses"
    name_member = "user_status_name"
    admin = AdminOptions(columns=("state",))
    filled_late = frozenset({"display_order"})
    late_defaults = (line_numbered("display_order", "UserStatuses"),)
    old_names = {"General.DocumentTypeUserStatuses": "24.1.5.35"}


class Route(Entity):
    """A route from one document to the next."""

    document_type = ReferenceField("DocumentType", owner=True)
    procedure_name = models.CharField(max_length=254)
    activation_date = models.DateField(default=current_date)
    active = models.BooleanField(default=True)
    allowed_generation_types = EnumField(ROUTE_ALLOWED_GENERATION_TYPES, default="BothAutoAndManually")
    allow_obsolete_generation = models.BooleanField(default=False)
    condition_filter_xml = models.TextField(null=True, blank=True)
    condition_states_bit_mask = EnumField(DOCUMENT_STATE_FLAGS, null=True, blank=True)
    connected_party_condition = EnumField(ROUTE_CONNECTED_PARTY_CONDITION, default="AnyParty")
    deactivation_date = models.DateField(null=True, blank=True)
    destination_state = EnumField(DOCUMENT_STATE)
    negative_condition_filter_xml = models.TextField(null=True, blank=True)
    notes = models.CharField(max_length=254, null=True, blank=True)
    parent_document_relationship_type = EnumField(PARENT_DOCUMENT_RELATIONSHIP_TYPE, default="Subtask")
    process_event = models.CharField(max_length=254)
    read_only = models.BooleanField(default=False)
    condition_enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    condition_user_status = ReferenceField("DocumentTypeUserStatus", null=True, blank=True)
    destination_document_type = ReferenceField("DocumentType", null=True, blank=True)
    destination_enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    destination_enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)
    destination_user_status = ReferenceField("DocumentTypeUserStatus", null=True, blank=True)


@repositories.register
class Routes(Repository[Route]):
    name = "Systems.Documents.Routes"
    base_table = "Wf_Routes"
    name_member = "procedure_name"
    admin = AdminOptions(unlisted=frozenset({"read_only"}))
    validations = (dates_in_order("activation_date", "deactivation_date"),)
    api_names = {"condition_filter_xml": "ConditionFilterXML"}
    old_names = {"Systems.Workflow.Routes": "24.1.101.1"}
