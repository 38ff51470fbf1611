"""Systems.Documents: types, statuses, numbers and printouts of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

from domain.entities.behaviour import dates_in_order, find_one, line_numbered, numbered
from domain.entities.defaults import current_date
from domain.entities.enums import PARENT_DOCUMENT_RELATIONSHIP_TYPE, PRIORITY
from domain.model.attributes import Child
from domain.model.naming import near
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation import errors
from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.fields import EnumField, ExactDecimalField, GuidField, MultilanguageField, ReferenceField
from foundation.models import AggregateRoot, Entity

if TYPE_CHECKING:
    from domain.dataset.records.record import Record

DOCUMENT_STATE_FLAGS = EnumType(
    "General.Documents.DocumentStateFlags",
    {"New": 1, "Planned": 2, "FirmPlanned": 4, "Released": 8, "Completed": 16, "Adjustment": 32, "Closed": 64},
    flags=True,
)

DATA_SOURCE_QUERY_DEPENDS_ON_CHILD_ROWS = EnumType(
    "Systems.Documents.DataSourceQueriesRepository.DependsOnChildRows",
    {
        "NoChildRowDependency": 0,
        "TheRowIsVisibleIfThereIsAtLeastOneChildRow": 1,
        "TheRowIsVisibleIfAllSubTablesContainChildRows": 2,
    },
    edm_name="Systems_Documents_DataSourceQueries_DependsOnChildRows",
)

DATA_SOURCE_TYPE = EnumType(
    "Systems.Documents.DataSourcesRepository.DataSourceType",
    {"MultiTable": 0, "MasterDetail": 1, "SingleTable": 2},
    edm_name="Systems_Documents_DataSources_DataSourceType",
)

DOCUMENT_AMOUNT_TYPE_ALLOWED_DIRECTIONS = EnumType(
    "Systems.Documents.DocumentAmountTypesRepository.AllowedDirections",
    {"AllowAll": 0, "AllowOnlyPositive": 1, "AllowOnlyNegative": -1},
    edm_name="Systems_Documents_DocumentAmountTypes_AllowedDirections",
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
    edm_name="Systems_Documents_DocumentAmountTypes_DistributeBy",
)

DOCUMENT_TYPE_NOTIFICATION_STATUS_CHANGE_DIRECTION = EnumType(
    "Systems.Documents.DocumentTypeNotificationsRepository.StatusChangeDirection",
    {"AnyChange": 0, "NoChange": 1, "PositiveChange": 2, "NegativeChange": 3},
    edm_name="Systems_Documents_DocumentTypeNotifications_StatusChangeDirection",
)

DOCUMENT_TYPE_TRACK_ATTRIBUTE_CHANGES = EnumType(
    "Systems.Documents.DocumentTypesRepository.TrackAttributeChanges",
    {"Default": 0, "ForceEnable": 1, "ForceDisable": 2},
    edm_name="Systems_Documents_DocumentTypes_TrackAttributeChanges",
)

DOCUMENT_TYPE_TRACK_PRINT_IMAGES = EnumType(
    "Systems.Documents.DocumentTypesRepository.TrackPrintImages",
    {"DoNotTrack": 0, "SaveSourceDataCompressed": 1},
    edm_name="Systems_Documents_DocumentTypes_TrackPrintImages",
)

PRINTOUT_ALLOW_PRINTING_ON_STATE = EnumType(
    "Systems.Documents.PrintoutsRepository.AllowPrintingOnState",
    {"New": 0, "Planned": 10, "FirmPlanned": 20, "Released": 30, "Completed": 40, "Closed": 50},
    edm_name="Systems_Documents_Printouts_AllowPrintingOnState",
)

ROUTE_ALLOWED_GENERATION_TYPES = EnumType(
    "Systems.Documents.RoutesRepository.AllowedGenerationTypes",
    {"Auto": 0, "BothAutoAndManually": 1, "Manually": 2},
    edm_name="Systems_Documents_Routes_AllowedGenerationTypes",
)

ROUTE_CONNECTED_PARTY_CONDITION = EnumType(
    "Systems.Documents.RoutesRepository.ConnectedPartyCondition",
    {"AnyParty": 0, "ConnectedParty": 1, "UnconnectedParty": 2},
    edm_name="Systems_Documents_Routes_ConnectedPartyCondition",
)


class DataSource(AggregateRoot):
    """Where a printout takes its data from."""

    name = models.CharField(max_length=64)
    base_query_name = models.CharField(max_length=128)
    data_source_type = EnumField(DATA_SOURCE_TYPE, default="MultiTable")
    show_parent_tables = models.BooleanField(default=False)


@repositories.register
class DataSources(Repository[DataSource]):
    """Declares Systems.Documents.DataSources."""

    name = "Systems.Documents.DataSources"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)
    children = (Child("Queries", "Systems.Documents.DataSourceQueries"),)
    old_names = ("Systems.Reporting.DataSources",)


class DataSourceQuery(Entity):
    """One query of a data source."""

    data_source = ReferenceField("DataSource", owner=True)
    table_name = models.CharField(max_length=64, null=True, blank=True)
    depends_on_child_rows = EnumField(DATA_SOURCE_QUERY_DEPENDS_ON_CHILD_ROWS, default="NoChildRowDependency")
    extensions_list = models.TextField(null=True, blank=True)
    filter_xml = models.TextField(null=True, blank=True)
    first_row = models.BooleanField(default=False)
    reference_path = models.TextField()
    unique_name = models.CharField(max_length=64, null=True, blank=True)


@repositories.register
class DataSourceQueries(Repository[DataSourceQuery]):
    """Declares Systems.Documents.DataSourceQueries."""

    name = "Systems.Documents.DataSourceQueries"
    name_member = "table_name"
    display_format = "{TableName}"
    search_members = ("table_name",)
    old_names = ("Systems.Reporting.DataSourceQueries",)


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
        constraints = [
            models.UniqueConstraint(fields=["amount_type_code"], name="document_amount_type_amount_type_code_key"),
        ]


@repositories.register
class DocumentAmountTypes(Repository[DocumentAmountType]):
    """Declares Systems.Documents.DocumentAmountTypes."""

    name = "Systems.Documents.DocumentAmountTypes"
    code_member = "amount_type_code"
    name_member = "amount_type_name"
    display_format = "{AmountTypeName:T}"
    search_members = ("amount_type_code", "amount_type_name")
    children = (Child("Dependencies", "Systems.Documents.DocumentAmountTypeDependencies"),)
    late_defaults = (numbered("amount_type_code", "document-amount-types", width=2),)
    old_names = ("General.DocumentAmountTypes",)


class DocumentAmountTypeDependency(Entity):
    """An amount type that must be calculated before another."""

    document_amount_type = ReferenceField("DocumentAmountType", owner=True)
    depends_on_document_amount_type = ReferenceField("DocumentAmountType")


@repositories.register
class DocumentAmountTypeDependencies(Repository[DocumentAmountTypeDependency]):
    """Declares Systems.Documents.DocumentAmountTypeDependencies."""

    name = "Systems.Documents.DocumentAmountTypeDependencies"
    name_member = "document_amount_type.amount_type_name"
    display_format = "{DocumentAmountType.AmountTypeName:T}"
    search_members = ("document_amount_type.amount_type_name",)
    old_names = ("General.DocumentAmountTypeDependencies",)


class DocumentPartyRole(AggregateRoot):
    """What a further party does in a document."""

    code = models.CharField(max_length=32)
    name = MultilanguageField(max_length=254)
    notes = models.TextField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["code"], name="document_party_role_code_key"),
        ]


@repositories.register
class DocumentPartyRoles(Repository[DocumentPartyRole]):
    """Declares Systems.Documents.DocumentPartyRoles."""

    name = "Systems.Documents.DocumentPartyRoles"
    code_member = "code"
    name_member = "name"
    display_format = "{Name:T}"
    search_members = ("code", "name")
    old_names = ("General.DocumentPartyRoles",)


class DocumentType(AggregateRoot):
    """A kind of documents with its own numbers, statuses and rules."""

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
        constraints = [
            models.UniqueConstraint(fields=["code"], name="document_type_code_key"),
        ]


def entity_name_as_declared(document_type: Record) -> None:
    """Late default: EntityName is kept in the one spelling that documents are compared by, the repository's name."""
    if (repository := _repository_of(document_type)) is not None:
        document_type.entity_name = repository.name


def entity_name_of_documents(document_type: Record) -> None:
    """Validation: EntityName is a repository of documents, and the one of the documents that have the type already."""
    if document_type.is_deleted or not (document_type.is_new or document_type.is_changed("entity_name")):
        return
    given = document_type.entity_name
    if _repository_of(document_type) is None:
        hint = near(given, [repository.name for repository in repositories if _has_types(repository)])
        raise errors.BadRequest(errors.UNKNOWN_REPOSITORY, given, hint, target="EntityName")
    if document_type.is_new:
        return
    document = find_one(document_type.dataset, "General.Documents.Documents", document_type_id=document_type.id)
    if document is not None and document.repository.name != given:
        raise errors.Refused(
            errors.DOCUMENT_TYPE_MISMATCH,
            document_type.describe(),
            given,
            document.repository.name,
            target="EntityName",
        )


def _repository_of(document_type: Record) -> Repository[Any] | None:
    """The repository of documents that EntityName names, by its name or its set's name, be it a former one."""
    known = repositories.for_set((document_type.entity_name or "").replace(".", "_"))
    return known[0] if known is not None and _has_types(known[0]) else None


def _has_types(repository: Repository[Any]) -> bool:
    return repository.is_document and not repository.abstract


@repositories.register
class DocumentTypes(Repository[DocumentType]):
    """Declares Systems.Documents.DocumentTypes."""

    name = "Systems.Documents.DocumentTypes"
    code_member = "code"
    name_member = "type_name"
    display_format = "{TypeName:T}"
    search_members = ("code", "type_name")
    late_defaults = (entity_name_as_declared,)
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
    old_names = ("General.DocumentTypes",)


class DocumentTypeAmount(Entity):
    """An additional amount that documents of a type carry."""

    document_type = ReferenceField("DocumentType", owner=True)
    default_percent = ExactDecimalField(7, 6, null=True, blank=True)
    required_from_date = models.DateField(null=True, blank=True)
    required_thru_date = models.DateField(null=True, blank=True)
    user_can_change_input = models.BooleanField(default=True)
    document_amount_type = ReferenceField("DocumentAmountType")


@repositories.register
class DocumentTypeAmounts(Repository[DocumentTypeAmount]):
    """Declares Systems.Documents.DocumentTypeAmounts."""

    name = "Systems.Documents.DocumentTypeAmounts"
    name_member = "document_type.entity_name"
    display_format = "{DocumentType.EntityName}"
    search_members = ("document_type.entity_name",)
    validations = (dates_in_order("required_from_date", "required_thru_date"),)
    old_names = ("General.DocumentTypeAmounts",)


class DocumentTypeEnterpriseCompany(Entity):
    """An enterprise company that may use a document type."""

    document_type = ReferenceField("DocumentType", owner=True)
    enterprise_company = ReferenceField("EnterpriseCompany")


@repositories.register
class DocumentTypeEnterpriseCompanies(Repository[DocumentTypeEnterpriseCompany]):
    """Declares Systems.Documents.DocumentTypeEnterpriseCompanies."""

    name = "Systems.Documents.DocumentTypeEnterpriseCompanies"
    name_member = "document_type.entity_name"
    display_format = "{DocumentType.EntityName}"
    search_members = ("document_type.entity_name",)
    old_names = ("General.DocumentTypeEnterpriseCompanies",)


class DocumentTypeNotification(Entity):
    """Who is told by mail when documents of a type change state."""

    document_type = ReferenceField("DocumentType", owner=True)
    document_event = models.CharField(max_length=254, default="StateChanging")
    filter_xml = models.TextField(null=True, blank=True)
    state_bit_mask = models.IntegerField(default=0)
    status_change_direction = EnumField(DOCUMENT_TYPE_NOTIFICATION_STATUS_CHANGE_DIRECTION, default="AnyChange")
    to_email_address_list = models.CharField(max_length=2048)
    user_status = ReferenceField("DocumentTypeUserStatus", null=True, blank=True)


@repositories.register
class DocumentTypeNotifications(Repository[DocumentTypeNotification]):
    """Declares Systems.Documents.DocumentTypeNotifications."""

    name = "Systems.Documents.DocumentTypeNotifications"
    name_member = "document_type.entity_name"
    display_format = "{DocumentType.EntityName}"
    search_members = ("document_type.entity_name",)
    api_names = {"filter_xml": "FilterXML"}
    old_names = ("General.DocumentTypeNotifications",)


class DocumentTypeProperty(Entity):
    """A custom property that documents of a type carry."""

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
class DocumentTypeProperties(Repository[DocumentTypeProperty]):
    """Declares Systems.Documents.DocumentTypeProperties."""

    name = "Systems.Documents.DocumentTypeProperties"
    name_member = "document_type.entity_name"
    display_format = "{DocumentType.EntityName}"
    search_members = ("document_type.entity_name",)
    late_defaults = (line_numbered("line_no", "DocumentTypeProperties"),)
    validations = (dates_in_order("required_from_date", "required_thru_date"),)
    old_names = ("General.DocumentTypeProperties",)


class DocumentTypeSecurityCondition(Entity):
    """Which access key documents get under a condition."""

    document_type = ReferenceField("DocumentType", owner=True)
    condition_filter_xml = models.TextField()
    description = models.CharField(max_length=254)
    priority = EnumField(PRIORITY, default="Medium")


@repositories.register
class DocumentTypeSecurityConditions(Repository[DocumentTypeSecurityCondition]):
    """Declares Systems.Documents.DocumentTypeSecurityConditions."""

    name = "Systems.Documents.DocumentTypeSecurityConditions"
    name_member = "document_type.entity_name"
    display_format = "{DocumentType.EntityName}"
    search_members = ("document_type.entity_name",)
    old_names = ("General.DocumentTypeSecurityConditions",)


class DocumentTypeUserStatus(Entity):
    """A step that users define inside a document state."""

    document_type = ReferenceField("DocumentType", owner=True)
    user_status_name = MultilanguageField(max_length=128)
    active = models.BooleanField(default=True)
    display_order = models.IntegerField()
    instructions = MultilanguageField(null=True, blank=True)
    is_exit_status = models.BooleanField(default=True)
    state = EnumField(DOCUMENT_STATE)


@repositories.register
class DocumentTypeUserStatuses(Repository[DocumentTypeUserStatus]):
    """Declares Systems.Documents.DocumentTypeUserStatuses."""

    name = "Systems.Documents.DocumentTypeUserStatuses"
    name_member = "user_status_name"
    display_format = "{UserStatusName:T}"
    search_members = ("user_status_name",)
    late_defaults = (line_numbered("display_order", "UserStatuses"),)
    old_names = ("General.DocumentTypeUserStatuses",)


class Printout(Entity):
    """A form in which documents of a type are printed."""

    document_type = ReferenceField("DocumentType", owner=True)
    name = models.CharField(max_length=64)
    allow_printing_on_state = EnumField(PRINTOUT_ALLOW_PRINTING_ON_STATE, default="New")
    application_name = models.CharField(max_length=64, default="")
    backward_compatibility = models.BooleanField(default=False)
    copies = models.IntegerField(default=1)
    definition = models.TextField(null=True, blank=True)
    definition_format = models.CharField(max_length=16, null=True, blank=True, default="default")
    is_default = models.BooleanField(default=False)
    notes = models.CharField(max_length=512, null=True, blank=True)
    ord = models.IntegerField(default=0)
    ord_filter_xml = models.TextField(null=True, blank=True)
    ord_priority = models.IntegerField(null=True, blank=True, default=0)
    enterprise_company = ReferenceField("EnterpriseCompany", null=True, blank=True)
    printout_layout = ReferenceField("PrintoutLayout", null=True, blank=True)
    report = ReferenceField("DataSource", null=True, blank=True)


@repositories.register
class Printouts(Repository[Printout]):
    """Declares Systems.Documents.Printouts."""

    name = "Systems.Documents.Printouts"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)
    old_names = ("General.Printouts",)


class Route(Entity):
    """Which document follows from which."""

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
    """Declares Systems.Documents.Routes."""

    name = "Systems.Documents.Routes"
    name_member = "procedure_name"
    display_format = "{ProcedureName}"
    search_members = ("procedure_name",)
    validations = (dates_in_order("activation_date", "deactivation_date"),)
    api_names = {"condition_filter_xml": "ConditionFilterXML"}
    old_names = ("Systems.Workflow.Routes",)


class PrintoutLayout(AggregateRoot):
    """The layout of a printout."""

    name = models.CharField(max_length=64, db_index=True)
    binary_layout = models.BinaryField(editable=True, null=True, blank=True)
    document_entity_name = models.CharField(max_length=64)
    layout = models.TextField(null=True, blank=True)
    layout_format = models.CharField(max_length=32)
    notes = models.CharField(max_length=254, null=True, blank=True)
    data_source = ReferenceField("DataSource", null=True, blank=True)


@repositories.register
class PrintoutLayouts(Repository[PrintoutLayout]):
    """Declares Systems.Documents.PrintoutLayouts."""

    name = "Systems.Documents.PrintoutLayouts"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)
    old_names = ("General.PrintoutLayouts",)


class Sequence(AggregateRoot):
    """A named run of document numbers."""

    name = models.CharField(max_length=50)
    simultaneous_transactions = models.BooleanField(default=False)


@repositories.register
class Sequences(Repository[Sequence]):
    """Declares Systems.Documents.Sequences."""

    name = "Systems.Documents.Sequences"
    name_member = "name"
    display_format = "{Name}"
    search_members = ("name",)
    children = (Child("Generators", "Systems.Documents.SequenceGenerators"),)
    old_names = ("Systems.Core.Sequences",)


class SequenceGenerator(Entity):
    """Where a sequence stands for one company, location or person."""

    sequence = ReferenceField("Sequence", owner=True)
    allow_explicit_numbering = models.BooleanField(default=False)
    next_value = models.CharField(max_length=16, default="0000000001")
    sequence_priority = models.IntegerField(default=1)
    enterprise_company = ReferenceField("EnterpriseCompany")
    enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)
    responsible_person = ReferenceField("Person", null=True, blank=True)


@repositories.register
class SequenceGenerators(Repository[SequenceGenerator]):
    """Declares Systems.Documents.SequenceGenerators."""

    name = "Systems.Documents.SequenceGenerators"
    name_member = "sequence.name"
    display_format = "{Sequence.Name}"
    search_members = ("sequence.name",)
    old_names = ("General.SequenceGenerators",)
