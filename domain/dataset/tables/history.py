"""Tables of the change history (spec 12, 12.2): change sets, the changes of objects in them, and the settings.

Rows of change sets are never changed, apart from the mark of their audit entry. They are entities, so that the read
engine serves them (domain.entities.systems_core_history).
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from foundation.enums import EnumType
from foundation.fields import EnumField, GuidField, JsonDocumentField, ReferenceField
from foundation.models import AggregateRoot, Entity, unique
from identity.preferences import REASON_LENGTH

OPERATION = EnumType("Systems.Core.ObjectChangesRepository.Operation", {"Create": 0, "Update": 1, "Delete": 2})
TRACKING_LEVEL = EnumType(
    "Systems.Core.TrackChangesLevel",
    {
        "DoNotTrackChanges": 0,
        "TrackLastChangesOnly": 1,
        "TrackObjectChanges": 2,
        "TrackObjectAndAttributeChanges": 3,
        "TrackObjectAttributeAndBlobChanges": 4,
    },
)
NOTHING, LAST_CHANGE, CHANGE_SETS, ATTRIBUTES, BLOBS = range(5)
#: Name of the settings row for the repositories that have none of their own.
DEFAULTS = "*"


class ObjectChangeset(AggregateRoot):
    """The change set of one commit: its user, time, application, request and reason.

    change_time_utc  the time of the commit, which its entities have as AggregateLastUpdateTimeUtc; so has the change
                     set itself, by whose index retention finds the oldest ones
    user_id          null for the platform itself
    application      ApplicationUri of the caller; "" for the admin site and commands
    request_id       without an index, whose random keys took a sixth of the pages that a change writes. Readers look
                     among the change sets of the same time
    audit_entry      id of the audit entry that covers the set, after some seconds (domain.dataset.commit.history_chain)
    """

    change_time_utc = models.DateTimeField()
    application = models.CharField(max_length=254, blank=True)
    audit_entry = models.BigIntegerField(null=True, editable=False)
    reason = models.CharField(max_length=REASON_LENGTH, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    session_id = GuidField(null=True)
    user_id = GuidField(null=True)
    user_login = models.CharField(max_length=64, blank=True)

    objects: ClassVar[models.Manager[ObjectChangeset]]

    class Meta:
        indexes = [
            models.Index(
                fields=["change_time_utc"], name="objectchangeset_unchained", condition=models.Q(audit_entry=None)
            )
        ]


class ObjectChange(Entity):
    """The change of one entity by a commit. A root of which only parts changed has an update without attributes.

    repository_name  of the entity's own type
    root_item_id     the root of its aggregate; its own guid for a root
    item_version     ObjectVersion after the change; of a deletion the last one
    rules            codes of the rules that made the change or a part of it, separated by commas
    changes          JSON: attribute → [old, new]; custom properties as `@code`. Null below level 3
    old_values       JSON: attribute → value, the whole entity before the change; null for one that was created
    """

    changeset = ReferenceField(ObjectChangeset, owner=True)
    change_time_utc = models.DateTimeField()
    item_version = models.IntegerField()
    operation = EnumField(OPERATION)
    repository_name = models.CharField(max_length=128)
    entity_item_id = GuidField()
    root_item_id = GuidField()
    rules = models.CharField(max_length=254, blank=True)
    changes = JsonDocumentField(null=True)
    old_values = JsonDocumentField(null=True)

    objects: ClassVar[models.Manager[ObjectChange]]

    class Meta:
        indexes = [
            models.Index(fields=["entity_item_id", "change_time_utc", "item_version"], name="objectchange_entity"),
            # Queries as of a time add the entities that were deleted since.
            models.Index(
                fields=["repository_name", "change_time_utc"],
                name="objectchange_deleted",
                condition=models.Q(operation="Delete"),
            ),
        ]


class LastChange(models.Model):
    """The last user who changed an aggregate, for repositories of level 1; the root itself has time and version."""

    root_id = GuidField(primary_key=True)
    repository = models.CharField(max_length=128)
    changed_at = models.DateTimeField()
    user_id = GuidField(null=True)
    user_login = models.CharField(max_length=64, blank=True)
    application = models.CharField(max_length=254, blank=True)

    objects: ClassVar[models.Manager[LastChange]]


class RepositoryTracking(AggregateRoot):
    """The tracking settings of a repository's entities and their parts.

    repository_name  of a root repository, or `*` for all that have no row
    retention_days   null: as `*`, there HISTORY_DAYS of the settings
    tracked_since    time since which all changes of attributes are known; null below level 3. Of `*`: for repositories
                     that have level 3 by their kind
    others_tracked_since  of `*`: the same for the other repositories, which only its level tracks
    tracking_level   null: by the kind of the repository (domain.dataset.commit.tracking)
    """

    repository_name = models.CharField(max_length=128)
    others_tracked_since = models.DateTimeField(null=True, blank=True)
    retention_days = models.PositiveIntegerField(null=True, blank=True)
    tracked_since = models.DateTimeField(null=True, blank=True)
    tracking_level = EnumField(TRACKING_LEVEL, null=True, blank=True)

    objects: ClassVar[models.Manager[RepositoryTracking]]

    class Meta:
        constraints = [unique("repositorytracking", "repository_name")]
