"""General.Documents: the base of all documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

from domain.entities.behaviour import (
    company_from_context,
    fill,
    find_all,
    find_one,
    next_free_number,
    user_login,
)
from domain.entities.defaults import current_date, current_day
from domain.entities.document_adjustments import adjustment_number, check_adjusted_document
from domain.entities.document_editing import check_document_editable
from domain.entities.enums import PARENT_DOCUMENT_RELATIONSHIP_TYPE
from domain.model.admin_options import AdminOptions
from domain.model.attributes import AtCommit, Calculation, Child, FromSequence
from domain.model.registry import repositories
from domain.model.repository import M, Repository
from domain.model.values import in_language
from foundation import errors
from foundation.fields import EnumField, ReferenceField, StateField, utc_now
from foundation.models import PolymorphicRoot, unique

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


class Document(PolymorphicRoot):
    """Common attributes of all documents: type, number, date, state, parties."""

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
        constraints = [unique("document", "enterprise_company", "document_type", "document_no")]
        # For the newest exchange rates, which each order looks up among millions of documents.
        indexes = [
            models.Index(
                # The first column is constant here: with it, SQLite prefers this index to the one on that column.
                fields=["concrete_repository", "document_date"],
                name="currency_directory_date",
                condition=models.Q(concrete_repository="General.Currencies.CurrencyDirectories"),
            )
        ]


def document_date_today(document: Record) -> None:
    """Late default."""
    fill(document, "document_date", document.dataset.today())


def entity_name_of_repository(document: Record) -> None:
    """Late default: the repository's entity name, for clients of General_Documents_Documents."""
    if document.is_new:
        document.entity_name = document.repository.entity_name


def only_document_type(document: Record) -> None:
    """Late default: the only document type of the repository, if there is just one."""
    if document.document_type_id is None:
        known: dict[str, str] = document.dataset.memory.setdefault("document_types", {})
        name = document.repository.entity_name
        if name not in known:
            types = find_all(document.dataset, "Systems.Documents.DocumentTypes", entity_name=name, limit=2)
            if len(types) != 1:
                return
            known[name] = types[0].id
        fill(document, "document_type_id", known[name])


def company_location(document: Record) -> None:
    """Late default: the location of the request, if it is the company's, else the company's first."""
    company = document.enterprise_company
    if document.enterprise_company_location_id is not None or company is None:
        return
    dataset = document.dataset
    if dataset.context.location_id is not None:
        location = dataset.load("General.Contacts.CompanyLocations", dataset.context.location_id)
        if location is not None and location.company_id == company.company_id:
            fill(document, "enterprise_company_location_id", location.id)
            return
    known: dict[str, str | None] = dataset.memory.setdefault("locations", {})
    if company.id not in known:
        first = find_one(dataset, "General.Contacts.CompanyLocations", company_id=company.company_id, is_active=True)
        known[company.id] = first.id if first is not None else None
    fill(document, "enterprise_company_location_id", known[company.id])


def from_party_of_company(document: Record) -> None:
    """Late default: the company's party."""
    if document.from_party_id is None and (company := document.enterprise_company) is not None:
        fill(document, "from_party_id", company.company_id)


def master_document(document: Record) -> None:
    """Late default: the root of the document's tree; itself without a parent."""
    if document.master_document_id is None:
        above = document.dataset.load("General.Documents.Documents", document.parent_id) if document.parent_id else None
        fill(document, "master_document_id", above.master_document_id if above is not None else document.id)


def created_by_user(document: Record) -> None:
    """Late default."""
    if document.is_new:
        fill(document, "creation_user", user_login(document.dataset))
        fill(document, "creation_time", document.dataset.now())


@FromSequence
def document_no_from_sequence(document: Record) -> None:
    """Late default: the next number of the type.

    A type with a sequence starts at the NextValue of the sequence's generator for the company.
    """
    if document.document_no or document.document_type_id is None or document.enterprise_company_id is None:
        return
    sequence, width, start = f"document-type:{document.document_type_id}", 10, 1
    generator = _generator(document)
    if generator is not None and generator.next_value.isdigit():
        # Another NextValue starts another sequence of numbers.
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
    """Calculation: the state with its user status, and the tags at the end of display texts."""
    # Not `document.state`, which is the state of the record.
    state = document.values["State"]
    status = document.user_status
    words = f"{state} ({in_language(status.user_status_name, 'en')})" if status is not None else state
    document.full_state = f"Void, {words}" if document.void else words
    document.state_tags_attribute = " [Void]" if document.void else None


def type_of_entity(document: Record) -> None:
    """Validation: the document type belongs to this repository (its EntityName)."""
    if document.is_deleted or not (document.is_new or document.is_changed("document_type")):
        return
    document_type = document.document_type
    if document_type is not None and document_type.entity_name != document.repository.entity_name:
        raise errors.Refused(
            errors.DOCUMENT_TYPE_MISMATCH,
            document_type.describe(),
            document_type.entity_name,
            document.repository.entity_name,
            target="DocumentType",
        )


class DocumentRepository(Repository[M]):
    """Base of the repositories of documents: shared declarations."""

    code_member = "document_no"
    display_format = "{DocumentType.TypeName:T} {DocumentNo}{StateTagsAttribute}"
    is_document = True


@repositories.register
class Documents(DocumentRepository[Document]):
    name = "General.Documents.Documents"
    base_table = "Gen_Documents"
    admin = AdminOptions(
        columns=("state", "document_date"),
        shown_first=frozenset({"state", "user_status"}),
        unlisted=frozenset(
            {"adjustment_number", "creation_user", "creation_time", "entity_name", "planning_only", "read_only"}
        ),
        short_texts=frozenset({"notes", "document_notes"}),
        open_collections=frozenset({"Lines"}),
        hints={
            "document_no": _("Empty: the next number of the document type."),
            "document_type": _("Empty: the only type of such documents, where there is one only."),
        },
    )
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
    filled_late = frozenset({"document_no", "document_type", "enterprise_company", "from_party", "master_document"})
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
        AtCommit(adjustment_number),
    )
    calculations = (Calculation(state_in_words, ("State", "UserStatus", "Void"), always=True),)
    validations = (check_document_editable, type_of_entity, check_adjusted_document)
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
    old_names = {"General.Documents": "25.1.0.64"}
    abstract = True
