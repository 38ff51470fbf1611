"""General.Documents: the base of all documents and what belongs to every document."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.dataset.checks.edit_guards import before_edit, on_edit
from domain.entities.behaviour import (
    at_commit,
    company_from_context,
    fill,
    find_all,
    find_one,
    next_free_number,
    scratch,
    user_login,
)
from domain.entities.defaults import current_date, current_day
from domain.entities.document_states import record_state_change
from domain.entities.enums import PARENT_DOCUMENT_RELATIONSHIP_TYPE
from domain.entities.master_detail import marks_header
from domain.model.attributes import Calculation, Child
from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.model.values import in_language
from foundation import errors
from foundation.enums import DOCUMENT_STATE, EnumType
from foundation.fields import AmountField, EnumField, ExactDecimalField, GuidField, ReferenceField, StateField, utc_now
from foundation.models import Entity, PolymorphicRoot

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


DOCUMENT_FULFILLMENT_TYPE = EnumType(
    "General.Documents.DocumentFulfillmentsRepository.FulfillmentType",
    {"Planned": 0, "Completed": 1},
    edm_name="General_Documents_DocumentFulfillments_FulfillmentType",
)

DOCUMENT_PRINT_PRINTOUT_TYPE = EnumType(
    "General.Documents.DocumentPrintsRepository.PrintoutType",
    {"PhysicalPrinterPrintout": 0, "FiscalPrinterPrintout": 1, "Export": 2, "UserDownload": 3},
    edm_name="General_Documents_DocumentPrints_PrintoutType",
)

DOCUMENT_STATE_CHANGE_NEW_STATE = EnumType(
    "General.Documents.DocumentStateChangesRepository.NewState",
    {"New": 0, "Corrective": 5, "Planned": 10, "FirmPlanned": 20, "Released": 30, "Completed": 40, "Closed": 50},
    edm_name="General_Documents_DocumentStateChanges_NewState",
)


#: What changes in the life of a document without an edit.
LIFECYCLE = frozenset(
    {
        "State", "UserStatus", "FullState", "StateTagsAttribute", "ReleaseTime", "CompleteTime", "ReadOnly",
        "AdjustmentNumber", "AdjustmentTime", "AdjustmentUser", "Void", "VoidReason", "VoidTime", "VoidUser",
    }
)  # fmt: skip


class Document(PolymorphicRoot):
    """What all documents share: type, number, date, state, parties."""

    document_no = models.CharField(max_length=20, db_index=True)
    adjustment_number = models.IntegerField(default=0)
    adjustment_time = models.DateTimeField(null=True, blank=True)
    adjustment_user = models.CharField(max_length=64, null=True, blank=True)
    complete_time = models.DateTimeField(null=True, blank=True)
    creation_time = models.DateTimeField(default=utc_now)
    creation_user = models.CharField(max_length=64)
    document_date = models.DateField(default=current_date, db_index=True)
    document_notes = models.TextField(null=True, blank=True)
    entity_name = models.CharField(max_length=64, db_index=True)
    full_state = models.TextField(null=True, blank=True)
    parent_document_relationship_type = EnumField(PARENT_DOCUMENT_RELATIONSHIP_TYPE, null=True, blank=True)
    planning_only = models.BooleanField(default=False)
    read_only = models.BooleanField(default=False)
    reference_date = models.DateTimeField(null=True, blank=True, default=current_day)
    reference_document_no = models.CharField(max_length=20, null=True, blank=True)
    release_time = models.DateTimeField(null=True, blank=True)
    state = StateField(default="New", db_index=True)
    state_tags_attribute = models.TextField(null=True, blank=True)
    void = models.BooleanField(default=False)
    void_reason = models.CharField(max_length=254, null=True, blank=True)
    void_time = models.DateTimeField(null=True, blank=True)
    void_user = models.CharField(max_length=64, null=True, blank=True)
    adjusted_document = ReferenceField("self", null=True, blank=True)
    assigned_to_user = ReferenceField("identity.User", null=True, blank=True)
    currency_directory = ReferenceField("CurrencyDirectory", null=True, blank=True)
    document_type = ReferenceField("DocumentType")
    enterprise_company = ReferenceField("EnterpriseCompany")
    enterprise_company_location = ReferenceField("CompanyLocation", null=True, blank=True)
    from_party = ReferenceField("Party")
    master_document = ReferenceField("self")
    parent = ReferenceField("self", null=True, blank=True)
    prime_cause_document = ReferenceField("self", null=True, blank=True)
    responsible_person = ReferenceField("Person", null=True, blank=True)
    reverse_of_document = ReferenceField("self", null=True, blank=True)
    sequence = ReferenceField("Sequence", null=True, blank=True)
    to_party = ReferenceField("Party", null=True, blank=True)
    user_status = ReferenceField("DocumentTypeUserStatus", null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["enterprise_company", "document_type", "document_no"],
                name="document_enterprise_company_document_type_document_no_key",
            ),
        ]


def document_date_today(document: Record) -> None:
    """Late default."""
    fill(document, "document_date", document.dataset.today())


def entity_name_of_repository(document: Record) -> None:
    """Late default: what the document is, for readers of General_Documents_Documents."""
    if document.is_new:
        document.entity_name = document.repository.name


def only_document_type(document: Record) -> None:
    """Late default: where documents of the repository have one type, there is nothing to choose."""
    if document.document_type_id is None:
        known: dict[str, str] = scratch(document.dataset).setdefault("document_types", {})
        name = document.repository.name
        if name not in known:
            types = find_all(document.dataset, "Systems.Documents.DocumentTypes", entity_name=name, limit=2)
            if len(types) != 1:
                return
            known[name] = types[0].id
        fill(document, "document_type_id", known[name])


def company_location(document: Record) -> None:
    """Late default: the location of the request, where it is the company's, else the company's first."""
    company = document.enterprise_company
    if document.enterprise_company_location_id is not None or company is None:
        return
    dataset = document.dataset
    if dataset.context.location_id is not None:
        location = dataset.load("General.Contacts.CompanyLocations", dataset.context.location_id)
        if location is not None and location.company_id == company.company_id:
            fill(document, "enterprise_company_location_id", location.id)
            return
    known: dict[str, str | None] = scratch(dataset).setdefault("locations", {})
    if company.id not in known:
        first = find_one(dataset, "General.Contacts.CompanyLocations", company_id=company.company_id, is_active=True)
        known[company.id] = first.id if first is not None else None
    fill(document, "enterprise_company_location_id", known[company.id])


def from_party_of_company(document: Record) -> None:
    """Late default: documents come from the company unless somebody says otherwise."""
    if document.from_party_id is None and (company := document.enterprise_company) is not None:
        fill(document, "from_party_id", company.company_id)


def master_document(document: Record) -> None:
    """Late default: the head of the tree that the document stands in; itself, where it stands alone."""
    if document.master_document_id is None:
        above = document.dataset.load("General.Documents.Documents", document.parent_id) if document.parent_id else None
        fill(document, "master_document_id", above.master_document_id if above is not None else document.id)


def created_by_user(document: Record) -> None:
    """Late default."""
    if document.is_new:
        fill(document, "creation_user", user_login(document.dataset))
        fill(document, "creation_time", document.dataset.now())


@at_commit
def document_no_from_sequence(document: Record) -> None:
    """Late default: the next number of the type.

    A type with a sequence counts from the NextValue of the sequence's generator for the company.
    """
    if document.document_no or document.document_type_id is None or document.enterprise_company_id is None:
        return
    sequence, width, start = f"document-type:{document.document_type_id}", 10, 1
    generator = _generator(document)
    if generator is not None and generator.next_value.isdigit():
        # Another NextValue begins another run of numbers.
        sequence = f"document-sequence:{generator.id}:{generator.next_value}"
        width, start = len(generator.next_value), int(generator.next_value)
    document.sequence_id = document.sequence_id or (generator.sequence_id if generator is not None else None)
    document.document_no = next_free_number(
        document,
        "document_no",
        sequence,
        width=width,
        start=start,
        document_type_id=document.document_type_id,
        enterprise_company_id=document.enterprise_company_id,
    )


def _generator(document: Record) -> Record | None:
    document_type = document.document_type
    sequence = document.sequence or (document_type.sequence if document_type is not None else None)
    if sequence is None:
        return None
    fitting = [
        generator
        for generator in sequence.children("Generators")
        if generator.enterprise_company_id == document.enterprise_company_id
        and generator.enterprise_company_location_id in (None, document.enterprise_company_location_id)
        and generator.responsible_person_id in (None, document.responsible_person_id)
    ]
    return min(fitting, key=lambda generator: (generator.sequence_priority, generator.id), default=None)


def state_in_words(document: Record) -> None:
    """Calculation: the state with its user status, and the tags that display texts end in."""
    # Not `document.state`, which is the record's own.
    state = document.values["State"]
    status = document.user_status
    words = f"{state} ({in_language(status.user_status_name, 'en')})" if status is not None else state
    document.full_state = f"Void, {words}" if document.void else words
    document.state_tags_attribute = " [Void]" if document.void else None


def planned_becomes_firm(document: Record) -> None:
    """Edit effect: a planned document that somebody edits becomes a firm plan (spec 03, 3.5)."""
    if document.custom_changed or not document.original_values.keys() <= LIFECYCLE:
        _make_firm(document)


def planned_root_becomes_firm(part: Record) -> None:
    """Edit effect: lines and other parts are edits of their document."""
    if part.is_new or part.is_deleted or part.original_values or part.custom_changed:
        for root in part.roots:
            if "State" in root.values:
                _make_firm(root)


def _make_firm(document: Record) -> None:
    if (
        document.state in ("Unchanged", "Modified")
        and document.values["State"] == "Planned"
        and not document.is_changed("state")
        and not document.planning_only
    ):
        document.dataset.assign(document, "State", "FirmPlanned")
        # The user status was one of the state that it has left.
        document.user_status = None
        record_state_change(document, "FirmPlanned", system_initiated=True)


def _document_open(document: Record, attribute: str) -> None:
    """Edit guard of documents."""
    if not document.is_new and attribute not in LIFECYCLE:
        _require_editable(document, document.values["Void"], document.values["State"])


def _root_open(part: Record, attribute: str) -> None:
    """Edit guard of lines and other parts."""
    root = part.root
    if not root.is_new and "State" in root.values:
        _require_editable(root, root.values["Void"], root.values["State"])


@before_edit(_document_open)
@on_edit(planned_becomes_firm)
def check_document_editable(document: Record) -> None:
    """Validation: callers cannot edit or delete what is released or void; its life goes on by operations only.

    As stored: what was edited before a release that is pending with it may be saved. What is edited after it, the edit
    guard has refused.
    """
    if not document.by_client or document.is_new:
        return
    edited = document.original_values.keys() - LIFECYCLE
    if document.is_deleted or edited or document.custom_changed:
        _require_editable(document, document.original("void"), document.original("state"))


@before_edit(_root_open)
@on_edit(planned_root_becomes_firm)
def check_parent_editable(part: Record) -> None:
    """Validation: as check_document_editable, for lines and other parts."""
    if part.by_client and (part.is_deleted or part.is_new or part.original_values or part.custom_changed):
        root = part.root
        if not root.is_new and "State" in root.values:
            _require_editable(root, root.original("void"), root.original("state"))


def _require_editable(document: Record, void: bool, state: str) -> None:
    if void:
        raise errors.Refused(errors.DOCUMENT_VOID, document.describe())
    if DOCUMENT_STATE.members[state] >= DOCUMENT_STATE.members["Released"]:
        raise errors.Refused(errors.DOCUMENT_LOCKED, document.describe(), state)


def type_of_entity(document: Record) -> None:
    """Validation: the document type is one for documents of this repository (its EntityName)."""
    if document.is_deleted or not (document.is_new or document.is_changed("document_type")):
        return
    document_type = document.document_type
    if document_type is not None and document_type.entity_name != document.repository.name:
        raise errors.Refused(
            errors.DOCUMENT_TYPE_MISMATCH,
            document_type.describe(),
            document_type.entity_name,
            document.repository.name,
            target="DocumentType",
        )


@repositories.register
class Documents(Repository[Document]):
    """Declares General.Documents.Documents."""

    name = "General.Documents.Documents"
    code_member = "document_no"
    display_format = "{DocumentType.TypeName:T} {DocumentNo}{StateTagsAttribute}"
    search_members = ("document_no",)
    children = (
        Child("Comments", "General.Documents.DocumentComments"),
        Child("DistributedAmounts", "General.Documents.DocumentDistributedAmounts"),
        Child("DocumentAmounts", "General.Documents.DocumentAmounts"),
        Child("FileAttachments", "General.Documents.DocumentFileAttachments"),
        Child("Fulfillments", "General.Documents.DocumentFulfillments"),
        Child("LineAmounts", "General.Documents.DocumentLineAmounts"),
        Child("Parties", "General.Documents.DocumentParties"),
        Child("Prints", "General.Documents.DocumentPrints"),
        Child("StateChanges", "General.Documents.DocumentStateChanges"),
    )
    late_defaults = (
        company_from_context,
        document_date_today,
        entity_name_of_repository,
        only_document_type,
        company_location,
        from_party_of_company,
        master_document,
        created_by_user,
        document_no_from_sequence,
    )
    calculations = (Calculation(state_in_words, ("State", "UserStatus", "Void"), always=True),)
    validations = (check_document_editable, type_of_entity)
    read_only = frozenset(
        {
            "adjustment_number",
            "adjustment_time",
            "adjustment_user",
            "complete_time",
            "creation_time",
            "creation_user",
            "entity_name",
            "full_state",
            "parent_document_relationship_type",
            "planning_only",
            "read_only",
            "release_time",
            "state_tags_attribute",
            "user_status",
            "void",
            "void_reason",
            "void_time",
            "void_user",
        }
    )
    calculated = frozenset({"full_state", "state_tags_attribute"})
    old_names = ("General.Documents",)
    is_document = True
    abstract = True


class DocumentAmount(Entity):
    """An additional amount of a document, such as a tax or a discount."""

    document = ReferenceField("Document", owner=True)
    base_amount = AmountField(14, 2, null=True, blank=True)
    input_amount = AmountField(14, 2, currency="InputAmountCurrency", null=True, blank=True)
    input_percent = ExactDecimalField(7, 6, null=True, blank=True)
    input_unit_amount = AmountField(14, 5, currency="InputAmountCurrency", null=True, blank=True)
    total_distributed_amount = AmountField(14, 2, null=True, blank=True)
    user_can_change_input = models.BooleanField(default=True)
    document_amount_type = ReferenceField("DocumentAmountType")
    input_amount_currency = ReferenceField("Currency", null=True, blank=True)
    input_unit = ReferenceField("MeasurementUnit", null=True, blank=True)


@repositories.register
class DocumentAmounts(Repository[DocumentAmount]):
    """Declares General.Documents.DocumentAmounts."""

    name = "General.Documents.DocumentAmounts"
    name_member = "document.entity_name"
    display_format = "{DocumentAmountType.AmountTypeName:T}"
    search_members = ("document.document_no",)
    children = (Child("ReferencedDocuments", "General.Documents.DocumentAmountReferencedDocuments"),)
    calculations = marks_header("DocumentAmounts", "InputAmount", "InputPercent")
    validations = (check_parent_editable,)
    read_only = frozenset({"base_amount", "total_distributed_amount"})
    old_names = ("General.DocumentAmounts",)


class DocumentAmountReferencedDocument(Entity):
    """A document that an additional amount was taken from."""

    document_amount = ReferenceField("DocumentAmount", owner=True)
    referenced_document = ReferenceField("Document")


@repositories.register
class DocumentAmountReferencedDocuments(Repository[DocumentAmountReferencedDocument]):
    """Declares General.Documents.DocumentAmountReferencedDocuments."""

    name = "General.Documents.DocumentAmountReferencedDocuments"
    name_member = "document_amount.document.entity_name"
    display_format = "{Id}. {DocumentAmount.Document.DocumentNo} {DocumentAmount.Document.DocumentType.TypeName:T}"
    search_members = ("document_amount.document.document_no",)
    old_names = ("General.DocumentAmountReferencedDocuments",)


class DocumentComment(Entity):
    """A remark of a user on a document."""

    document = ReferenceField("Document", owner=True)
    comment = models.CharField(max_length=254)
    comment_timestamp = models.DateTimeField(default=utc_now)
    assign_to_user = ReferenceField("identity.User", null=True, blank=True)
    user = ReferenceField("identity.User", null=True, blank=True)


def comment_of_user(comment: Record) -> None:
    """Late default: who remarks."""
    caller = comment.dataset.context.user
    fill(comment, "user_id", caller.id if caller is not None else None)


@repositories.register
class DocumentComments(Repository[DocumentComment]):
    """Declares General.Documents.DocumentComments."""

    name = "General.Documents.DocumentComments"
    copied_with_owner = False
    name_member = "document.entity_name"
    display_format = "{Id}. {Document.DocumentNo} {Document.DocumentType.TypeName:T}"
    search_members = ("document.document_no",)
    late_defaults = (comment_of_user,)
    old_names = ("General.DocumentComments",)


class DocumentDistributedAmount(Entity):
    """The part of an additional amount that falls on one line."""

    document = ReferenceField("Document", owner=True)
    amount = AmountField(14, 2)
    base_amount = AmountField(14, 2, null=True, blank=True)
    document_line_id = GuidField(null=True, blank=True, db_index=True)
    document_amount_type = ReferenceField("DocumentAmountType")
    referenced_document = ReferenceField("Document", null=True, blank=True)


@repositories.register
class DocumentDistributedAmounts(Repository[DocumentDistributedAmount]):
    """Declares General.Documents.DocumentDistributedAmounts."""

    name = "General.Documents.DocumentDistributedAmounts"
    name_member = "document.entity_name"
    display_format = "{DocumentAmountType} {DocumentLineId} {Amount}"
    search_members = ("document.document_no",)
    validations = (check_parent_editable,)
    old_names = ("General.DocumentDistributedAmounts",)


class DocumentFileAttachment(Entity):
    """A file kept with, or linked from, a document."""

    document = ReferenceField("Document", owner=True)
    file_name = models.CharField(max_length=128)
    embedded_file_contents = models.BinaryField(editable=True, null=True, blank=True)
    is_linked = models.BooleanField(default=False)
    linked_file_path = models.CharField(max_length=254, null=True, blank=True)
    notes = models.TextField(null=True, blank=True)


@repositories.register
class DocumentFileAttachments(Repository[DocumentFileAttachment]):
    """Declares General.Documents.DocumentFileAttachments."""

    name = "General.Documents.DocumentFileAttachments"
    name_member = "file_name"
    display_format = "{Id}. {Document.DocumentNo} {Document.DocumentType.TypeName:T}"
    search_members = ("document.document_no",)
    old_names = ("General.DocumentFileAttachments",)


class DocumentFulfillment(Entity):
    """How much of a document line has been carried out."""

    document = ReferenceField("Document", owner=True)
    destination_entity_name = models.CharField(max_length=64, default="")
    creation_time_utc = models.DateTimeField(default=utc_now)
    document_line_id = GuidField(db_index=True)
    fulfillment_type = EnumField(DOCUMENT_FULFILLMENT_TYPE, default="Completed")
    is_final = models.BooleanField(default=False)
    line_no = models.IntegerField(null=True, blank=True)
    line_type = models.CharField(max_length=1, default="L")
    quantity_base = ExactDecimalField(12, 3)
    standard_quantity = ExactDecimalField(12, 3)
    creation_user = ReferenceField("identity.User", null=True, blank=True)
    lot = ReferenceField("Lot", null=True, blank=True)
    parent_fulfillment = ReferenceField("self", null=True, blank=True)
    product = ReferenceField("Product", null=True, blank=True)


@repositories.register
class DocumentFulfillments(Repository[DocumentFulfillment]):
    """Declares General.Documents.DocumentFulfillments."""

    name = "General.Documents.DocumentFulfillments"
    copied_with_owner = False
    name_member = "destination_entity_name"
    display_format = "{Id}. {Document.DocumentNo} {Document.DocumentType.TypeName:T}"
    search_members = ("document.document_no",)
    old_names = ("General.DocumentFulfillments",)


class DocumentLineAmount(Entity):
    """The share of an additional amount that a line was given."""

    document = ReferenceField("Document", owner=True)
    document_line_id = GuidField()
    line_percent = ExactDecimalField(14, 6, default=Decimal(0))
    document_amount_type = ReferenceField("DocumentAmountType")
    product = ReferenceField("Product")
    referenced_document = ReferenceField("Document", null=True, blank=True)


@repositories.register
class DocumentLineAmounts(Repository[DocumentLineAmount]):
    """Declares General.Documents.DocumentLineAmounts."""

    name = "General.Documents.DocumentLineAmounts"
    name_member = "document.entity_name"
    display_format = "{Id}. {Document.DocumentNo} {Document.DocumentType.TypeName:T}"
    search_members = ("document.document_no",)
    validations = (check_parent_editable,)
    old_names = ("General.DocumentLineAmounts",)


class DocumentParty(Entity):
    """A further party of a document, in a role."""

    document = ReferenceField("Document", owner=True)
    notes = models.TextField(null=True, blank=True)
    party = ReferenceField("Party")
    role = ReferenceField("DocumentPartyRole")


@repositories.register
class DocumentParties(Repository[DocumentParty]):
    """Declares General.Documents.DocumentParties."""

    name = "General.Documents.DocumentParties"
    name_member = "document.entity_name"
    display_format = "{Id}. {Document.DocumentNo} {Document.DocumentType.TypeName:T}"
    search_members = ("document.document_no",)
    validations = (check_parent_editable,)
    old_names = ("General.DocumentParties",)


class DocumentPrint(Entity):
    """A printout that was made of a document."""

    document = ReferenceField("Document", owner=True)
    additional_data = models.TextField(null=True, blank=True)
    description = models.CharField(max_length=254, null=True, blank=True)
    is_original = models.BooleanField(default=True)
    printout_type = EnumField(DOCUMENT_PRINT_PRINTOUT_TYPE, null=True, blank=True)
    print_time = models.DateTimeField(default=utc_now, db_index=True)
    print_user = models.CharField(max_length=64)
    reference_no = models.CharField(max_length=32, null=True, blank=True)


@repositories.register
class DocumentPrints(Repository[DocumentPrint]):
    """Declares General.Documents.DocumentPrints."""

    name = "General.Documents.DocumentPrints"
    copied_with_owner = False
    name_member = "document.entity_name"
    display_format = "{Id}. {Document.DocumentNo} {Document.DocumentType.TypeName:T}"
    search_members = ("document.document_no",)
    old_names = ("General.DocumentPrints",)


class DocumentStateChange(Entity):
    """One step in the life of a document."""

    document = ReferenceField("Document", owner=True)
    new_state = EnumField(DOCUMENT_STATE_CHANGE_NEW_STATE)
    system_initiated = models.BooleanField(default=False)
    update_time = models.DateTimeField(default=utc_now, db_index=True)
    update_user = models.CharField(max_length=64)
    void = models.BooleanField(default=False)
    user_status = ReferenceField("DocumentTypeUserStatus", null=True, blank=True)


@repositories.register
class DocumentStateChanges(Repository[DocumentStateChange]):
    """Declares General.Documents.DocumentStateChanges."""

    name = "General.Documents.DocumentStateChanges"
    name_member = "document.entity_name"
    display_format = "{Id}. {Document.DocumentNo} {Document.DocumentType.TypeName:T}"
    search_members = ("document.document_no",)
    read_only = frozenset({"system_initiated"})
    old_names = ("General.DocumentStateChanges",)
    access = "ReadOnly"  # ChangeState and MakeVoid write them
