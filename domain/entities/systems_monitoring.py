"""Systems.Monitoring: messages of processes."""

from __future__ import annotations

from django.db import models

from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, utc_now
from foundation.models import AggregateRoot

INFORMATION_MESSAGE_TYPE = EnumType(
    "Systems.Monitoring.InformationMessagesRepository.InformationMessageType",
    {"Information": 0, "Warning": 1, "Error": 2},
    edm_name="Systems_Monitoring_InformationMessages_InformationMessageType",
)


class InformationMessage(AggregateRoot):
    """A message that a process left for administrators."""

    machine_name = models.CharField(max_length=128)
    information_message_time = models.DateTimeField(default=utc_now, db_index=True)
    information_message_type = EnumField(INFORMATION_MESSAGE_TYPE, default="Information")
    message = models.TextField()
    process_description = models.CharField(max_length=254)
    url = models.CharField(max_length=254, null=True, blank=True)
    user_name = models.CharField(max_length=128)


@repositories.register
class InformationMessages(Repository[InformationMessage]):
    """Declares Systems.Monitoring.InformationMessages."""

    name = "Systems.Monitoring.InformationMessages"
    name_member = "machine_name"
    display_format = "{InformationMessageType} - {ProcessDescription}"
    search_members = ("machine_name",)
    read_only = frozenset(
        {
            "information_message_time",
            "information_message_type",
            "machine_name",
            "message",
            "process_description",
            "user_name",
        }
    )
    api_names = {"url": "URL"}
    old_names = ("Systems.Core.InformationMessages",)
