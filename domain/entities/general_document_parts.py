"""General.Documents: parts of every document."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import entity_names, fill
from domain.entities.document_editing import check_parent_editable
from domain.entities.master_detail import marks_header
from domain.model.attributes import Child
from domain.model.registry import repositories
from domain.model.repository import M, Repository
from foundation.enums import EnumType
from foundation.fields import AmountField, EnumField, ExactDecimalField, GuidField, ReferenceField, utc_now
from foundation.models import Entity

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


DOCUMENT_FULFILLMENT_TYPE = EnumType(
    "General.Documents.DocumentFulfillmentsRepository.FulfillmentType", {"Planned": 0, "Completed": 1}
)

DOCUMENT_PRINT_PRINTOUT_TYPE = EnumType(
    "General.Documents.DocumentPrintsRepository.PrintoutType",
    {"PhysicalPrinterPrintout": 0, "FiscalPrinterPrintout": 1, "Export": 2, "UserDownload": 3},
)

DOCUMENT_STATE_CHANGE_NEW_STATE = EnumType(
    "General.Documents.DocumentStateChangesRepository.NewState",
    {"New": 0, "Corrective": 5, "Planned": 10, "FirmPlanned": 20, "Released": 30, "Completed": 40, "Closed": 50},
)


class DocumentParts(Repository[M]):
    """Base of the repositories of documents' parts."""

    name_member = "document.entity_name"
    display_format = "{Id}. {Document.DocumentNo} {Document.DocumentType.TypeName:T}"
    search_members = ("document.document_no",)


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
class DocumentAmounts(DocumentParts[DocumentAmount]):
    name = "General.Documents.DocumentAmounts"
    base_table = "Gen_Document_Amounts"
    display_format = "{DocumentAmountType.AmountTypeName:T}"
    children = (Child("ReferencedDocuments", "General.Documents.DocumentAmountReferencedDocuments"),)
    calculations = marks_header("DocumentAmounts", "InputAmount", "InputPercent")
    validations = (check_parent_editable,)
    read_only = frozenset({"base_amount", "total_distributed_amount"})
    old_names = {"General.DocumentAmounts": "25.1.0.64"}


class DocumentAmountReferencedDocument(Entity):
    """A document that an additional amount was taken from."""

    document_amount = ReferenceField("DocumentAmount", owner=True)
    referenced_document = ReferenceField("Document")


@repositories.register
class DocumentAmountReferencedDocuments(Repository[DocumentAmountReferencedDocument]):
    name = "General.Documents.DocumentAmountReferencedDocuments"
    base_table = "Gen_Document_Amount_Referenced_Documents"
    name_member = "document_amount.document.entity_name"
    display_format = "{Id}. {DocumentAmount.Document.DocumentNo} {DocumentAmount.Document.DocumentType.TypeName:T}"
    search_members = ("document_amount.document.document_no",)
    old_names = {"General.DocumentAmountReferencedDocuments": "25.1.0.64"}


class DocumentComment(Entity):
    """A remark of a user on a document."""

    document = ReferenceField("Document", owner=True)
    comment = models.CharField(max_length=254)
    comment_timestamp = models.DateTimeField(default=utc_now)
    assign_to_user = ReferenceField("identity.User", null=True, blank=True)
    user = ReferenceField("identity.User", null=True, blank=True)


def comment_of_user(comment: Record) -> None:
    """Late default: the user of the comment."""
    caller = comment.dataset.context.user
    fill(comment, "user_id", caller.id if caller is not None else None)


@repositories.register
class DocumentComments(DocumentParts[DocumentComment]):
    name = "General.Documents.DocumentComments"
    base_table = "Gen_Document_Comments"
    copied_with_owner = False
    late_defaults = (comment_of_user,)
    old_names = {"General.DocumentComments": "25.1.0.64"}


class DocumentDistributedAmount(Entity):
    """The part of an additional amount that falls on one line."""

    document = ReferenceField("Document", owner=True)
    amount = AmountField(14, 2)
    base_amount = AmountField(14, 2, null=True, blank=True)
    document_line_id = GuidField(null=True, blank=True, db_index=True)
    document_amount_type = ReferenceField("DocumentAmountType")
    referenced_document = ReferenceField("Document", null=True, blank=True)


@repositories.register
class DocumentDistributedAmounts(DocumentParts[DocumentDistributedAmount]):
    name = "General.Documents.DocumentDistributedAmounts"
    base_table = "Gen_Document_Distributed_Amounts"
    display_format = "{DocumentAmountType} {DocumentLineId} {Amount}"
    validations = (check_parent_editable,)
    old_names = {"General.DocumentDistributedAmounts": "25.1.0.64"}


class DocumentFileAttachment(Entity):
    """A file kept with, or linked from, a document."""

    document = ReferenceField("Document", owner=True)
    file_name = models.CharField(max_length=128)
    embedded_file_contents = models.BinaryField(editable=True, null=True, blank=True)
    is_linked = models.BooleanField(default=False)
    linked_file_path = models.CharField(max_length=254, null=True, blank=True)
    notes = models.TextField(null=True, blank=True)


@repositories.register
class DocumentFileAttachments(DocumentParts[DocumentFileAttachment]):
    name = "General.Documents.DocumentFileAttachments"
    base_table = "Gen_Document_File_Attachments"
    name_member = "file_name"
    old_names = {"General.DocumentFileAttachments": "25.1.0.64"}


class DocumentFulfillment(Entity):
    """The fulfilled quantity of a document line."""

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
class DocumentFulfillments(DocumentParts[DocumentFulfillment]):
    name = "General.Documents.DocumentFulfillments"
    base_table = "Gen_Document_Fulfillments"
    copied_with_owner = False
    name_member = "destination_entity_name"
    late_defaults = (entity_names("DestinationEntityName"),)
    old_names = {"General.DocumentFulfillments": "25.1.0.64"}


class DocumentLineAmount(Entity):
    """The share of an additional amount that is allocated to a line."""

    document = ReferenceField("Document", owner=True)
    document_line_id = GuidField()
    line_percent = ExactDecimalField(14, 6, default=Decimal(0))
    document_amount_type = ReferenceField("DocumentAmountType")
    product = ReferenceField("Product")
    referenced_document = ReferenceField("Document", null=True, blank=True)


@repositories.register
class DocumentLineAmounts(DocumentParts[DocumentLineAmount]):
    name = "General.Documents.DocumentLineAmounts"
    base_table = "Gen_Document_Line_Amounts"
    validations = (check_parent_editable,)
    old_names = {"General.DocumentLineAmounts": "25.1.0.64"}


class DocumentParty(Entity):
    """A further party of a document, in a role."""

    document = ReferenceField("Document", owner=True)
    notes = models.TextField(null=True, blank=True)
    party = ReferenceField("Party")
    role = ReferenceField("DocumentPartyRole")


@repositories.register
class DocumentParties(DocumentParts[DocumentParty]):
    name = "General.Documents.DocumentParties"
    base_table = "Gen_Document_Parties"
    validations = (check_parent_editable,)
    old_names = {"General.DocumentParties": "25.1.0.64"}


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
class DocumentPrints(DocumentParts[DocumentPrint]):
    name = "General.Documents.DocumentPrints"
    base_table = "Gen_Document_Prints"
    copied_with_owner = False
    old_names = {"General.DocumentPrints": "25.1.0.64"}


class DocumentStateChange(Entity):
    """A state change of a document."""

    document = ReferenceField("Document", owner=True)
    new_state = EnumField(DOCUMENT_STATE_CHANGE_NEW_STATE)
    system_initiated = models.BooleanField(default=False)
    update_time = models.DateTimeField(default=utc_now, db_index=True)
    update_user = models.CharField(max_length=64)
    void = models.BooleanField(default=False)
    user_status = ReferenceField("DocumentTypeUserStatus", null=True, blank=True)


@repositories.register
class DocumentStateChanges(DocumentParts[DocumentStateChange]):
    name = "General.Documents.DocumentStateChanges"
    base_table = "Gen_Document_State_Changes"
    read_only = frozenset({"system_initiated"})
    old_names = {"General.DocumentStateChanges": "25.1.0.64"}
    access = "ReadOnly"  # ChangeState and MakeVoid write them
