"""Systems.Core: scripts, notifications, notes about entities."""

from __future__ import annotations

from django.db import models

from domain.model.attributes import DescribedEntity
from domain.model.registry import repositories
from domain.model.repository import Repository
from foundation.enums import EnumType
from foundation.fields import EnumField, GuidField, MultilanguageField, ReferenceField, utc_now
from foundation.models import AggregateRoot, unique

NOTIFICATION_PRIORITY = EnumType(
    "Systems.Core.NotificationsRepository.Priority", {"Background": 1, "Low": 2, "Normal": 3, "High": 4, "Urgent": 5}
)


# Not in the model facts: spec 04, 4.4.
SCRIPT_LANGUAGE = EnumType("Systems.Core.ScriptLanguage", {"JavaScript": 0, "Python": 1, "CSharp": 2})


class Script(AggregateRoot):
    """A managed script.

    parameter_schema   JSON text: parameter name → {type, direction, required, default, …}
    """

    code = models.CharField(max_length=64)
    name = MultilanguageField(max_length=254)
    is_active = models.BooleanField(default=True)
    language = EnumField(SCRIPT_LANGUAGE, default="JavaScript")
    script_text = models.TextField(null=True, blank=True)
    parameter_schema = models.TextField(null=True, blank=True)
    notes = models.TextField(null=True, blank=True)

    class Meta:
        constraints = [unique("script", "code")]


@repositories.register
class Scripts(Repository[Script]):
    name = "Systems.Core.Scripts"
    authored = True
    code_member = "code"
    name_member = "name"


class ExtensibleDataObject(AggregateRoot):
    """Platform data about an entity of any repository."""

    display_name = models.CharField(max_length=128, null=True, blank=True)
    creation_time_utc = models.DateTimeField(null=True, blank=True, db_index=True)
    entity_item_id = GuidField(db_index=True)
    entity_type = models.CharField(max_length=64, default="", db_index=True)
    is_deleted = models.BooleanField(default=False)
    last_update_time_utc = models.DateTimeField(null=True, blank=True, db_index=True)
    latest_version = models.IntegerField(default=1)
    creation_user = ReferenceField("identity.User", null=True, blank=True)
    folder = ReferenceField("Folder", null=True, blank=True)
    last_update_user = ReferenceField("identity.User", null=True, blank=True)


@repositories.register
class ExtensibleDataObjects(Repository[ExtensibleDataObject]):
    name = "Systems.Core.ExtensibleDataObjects"
    base_table = "Sys_Objects"
    name_member = "display_name"
    describes = DescribedEntity("EntityType", "EntityItemId", by_table=True)
    read_only = frozenset({"folder"})


class Notification(AggregateRoot):
    """A message to a user."""

    anchor = models.CharField(max_length=128, null=True, blank=True)
    creation_time_utc = models.DateTimeField(default=utc_now, db_index=True)
    is_read = models.BooleanField(default=False)
    notification_class = models.CharField(max_length=64)
    priority = EnumField(NOTIFICATION_PRIORITY, default="Normal")
    subject = models.CharField(max_length=256, null=True, blank=True)
    data_object = ReferenceField("ExtensibleDataObject", null=True, blank=True)
    user = ReferenceField("identity.User")


@repositories.register
class Notifications(Repository[Notification]):
    name = "Systems.Core.Notifications"
    base_table = "Cmm_Notifications"
    display_format = "{Subject}"
    search_members = ("subject",)
    read_only = frozenset({"creation_time_utc"})
    old_names = {"Communities.Notifications": "25.1.1.36"}
    belongs_to = "User"
