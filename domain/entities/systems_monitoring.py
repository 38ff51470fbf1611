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
)


class InformationMessage(AggregateRoot):
    """A message to administrators."""

    machine_name = models.CharField(max_length=128)
    information_message_time = models.DateTimeField(default=utc_now, db_index=True)
    information_message_type = EnumField(INFORMATION_MESSAGE_TYPE, default="Information")
    message = models.TextField()
    process_description = models.CharField(max_length=254)
    url = models.CharField(max_length=254, null=True, blank=True)
    user_name = models.CharField(max_length=128)


@repositories.register
class InformationMessages(Repository[InformationMessage]):
    name = "Systems.Monitoring.InformationMessages"
    base_table = "Sys_Information_Messages"
    name_member = "machine_name"
    display_format = "{InformationMessageType} - {ProcessDescription}"
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
    old_names = {"Systems.Core.InformationMessages": "24.1.5.35"}
