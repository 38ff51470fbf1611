"""Tables of the write engine: Domain transactions, their pending changes, the change feed, number sequences.

Those of the change history: domain.dataset.tables.history.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from foundation.fields import EncryptedJsonField, EncryptedTextField, GuidField, JsonTextField


class NumberSequence(models.Model):
    """The last number of a gap-free sequence."""

    name = models.CharField(max_length=128, primary_key=True)
    last = models.BigIntegerField()


class DomainTransaction(models.Model):
    """An open Domain transaction (spec 03, 3.2) of a session and user."""

    id = models.CharField(max_length=32, primary_key=True)
    session_id = GuidField(null=True, db_index=True)
    user_id = GuidField(null=True)
    application = models.CharField(max_length=128, blank=True)
    model = models.CharField(max_length=16, default="common")
    track_changes = models.BooleanField(default=False)
    began_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    sequence = models.BigIntegerField(default=0)


class IdempotentResponse(models.Model):
    """The response to a write with an idempotency key (spec 13, 13.4).

    digest        of owner and key
    owner         digest of user and application
    fingerprint   digest of method, URL and body
    response      JSON: status, headers and body, which may hold data and secrets of the caller
    size          bytes of the body
    """

    digest = models.CharField(max_length=64, primary_key=True)
    owner = models.CharField(max_length=64, db_index=True)
    fingerprint = models.CharField(max_length=64)
    response = EncryptedTextField()
    size = models.IntegerField()
    made_at = models.DateTimeField(db_index=True)


class PendingChange(models.Model):
    """One changed entity of a Domain transaction.

    identity    base-most repository's name; with entity_id the entity's identity
    state       Added, Modified or Deleted; Gone for one that was Added and Deleted, until GetChanges has reported that
    current     serialized values: all of them for Added, changed ones for Modified
    original    serialized values as loaded, of the changed ones
    parents     guids of the entity's loaded aggregate parents, for finding pending children
    reported    the change that GetChanges has not reported yet: {"operation", "values"} or null
    """

    transaction = models.ForeignKey(DomainTransaction, on_delete=models.CASCADE, related_name="changes")
    identity = models.CharField(max_length=128)
    entity_id = GuidField()
    repository = models.CharField(max_length=128)
    state = models.CharField(max_length=10)
    version = models.IntegerField()
    by_client = models.BooleanField(default=False)
    client_caused = models.BooleanField(default=False)
    sequence = models.BigIntegerField()
    owner_id = GuidField(null=True)
    current = EncryptedJsonField()
    original = EncryptedJsonField()
    custom = JsonTextField(null=True)
    reported = EncryptedJsonField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["transaction", "identity", "entity_id"], name="pending_change_identity"),
        ]
        indexes = [models.Index(fields=["transaction", "owner_id"], name="pending_change_owner")]


class PendingWrite(models.Model):
    """A write that an event of a Domain transaction deferred to its commit; see
    domain.dataset.transactions.stored_writes.
    """

    transaction = models.ForeignKey(DomainTransaction, on_delete=models.CASCADE, related_name="writes")
    key = models.CharField(max_length=1000)
    handler = models.CharField(max_length=64)
    payload = EncryptedJsonField()

    objects: ClassVar[models.Manager[PendingWrite]]

    class Meta:
        constraints = [models.UniqueConstraint(fields=["transaction", "key"], name="pending_write_key")]


class ChangeFeedEntry(models.Model):
    """One committed change of one entity, in commit order; delta links read them (spec 02, 2.2)."""

    id = models.BigAutoField(primary_key=True)
    repository = models.CharField(max_length=128)
    entity_id = GuidField()
    operation = models.CharField(max_length=1)  # I, U, D
    changed_at = models.DateTimeField(db_index=True)

    class Meta:
        indexes = [models.Index(fields=["repository", "id"], name="change_feed_repository")]
