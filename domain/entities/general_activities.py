"""General.Activities: tasks, meetings, calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

from domain.entities.behaviour import dates_in_order, fill
from domain.entities.enums import PRIORITY
from domain.entities.general_documents import Document, DocumentRepository
from domain.model.registry import repositories
from domain.model.values import in_language
from foundation.enums import EnumType
from foundation.fields import EnumField, ReferenceField, utc_now

if TYPE_CHECKING:
    from domain.dataset.records.record import Record


ACTIVITY_SYSTEM_TYPE = EnumType(
    "General.Activities.ActivitiesRepository.SystemType", {"Communication": 0, "Meeting": 1, "Task": 2}
)


class Activity(Document):
    """A scheduled task, meeting or call."""

    deadline_time = models.DateTimeField(null=True, blank=True)
    end_time = models.DateTimeField(null=True, blank=True)
    is_single_execution = models.BooleanField(default=False)
    notes = models.TextField(null=True, blank=True)
    planned_duration_minutes = models.IntegerField(null=True, blank=True)
    priority = EnumField(PRIORITY, default="Medium")
    private = models.BooleanField(default=False)
    reminder_time = models.DateTimeField(null=True, blank=True)
    start_time = models.DateTimeField(default=utc_now)
    subject = models.CharField(max_length=254)
    system_type = EnumField(ACTIVITY_SYSTEM_TYPE, default="Task")
    contact_person = ReferenceField("Person", null=True, blank=True)
    owner_party = ReferenceField("Party")
    responsible_party = ReferenceField("Party")
    target_party = ReferenceField("Party", null=True, blank=True)


def subject_of_type(activity: Record) -> None:
    """Late default: the name of the document type."""
    if not activity.subject and (document_type := activity.document_type) is not None:
        fill(activity, "subject", in_language(document_type.type_name, activity.dataset.context.language)[:254])


def parties_of_company(activity: Record) -> None:
    """Late default: missing parties are the company's."""
    fill(activity, "owner_party_id", activity.from_party_id)
    fill(activity, "responsible_party_id", activity.owner_party_id)


@repositories.register
class Activities(DocumentRepository[Activity]):
    name = "General.Activities.Activities"
    base_table = "Cm_Activities"
    filled_late = frozenset({"owner_party", "responsible_party", "subject"})
    late_defaults = (
        subject_of_type,
        parties_of_company,
    )
    validations = (dates_in_order("start_time", "end_time"),)
    read_only = frozenset({"is_single_execution"})
    old_names = {"General.Contacts.Activities": "24.1.5.35"}
