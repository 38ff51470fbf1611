"""Tables of the audit chain."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from foundation.fields import utc_now

MAX_NAME = 254


class AuditEntry(models.Model):
    """One entry. It is written with the change that it describes, and gets its position in the chain seconds later.

    kind      name in audit.kinds
    actor     login of the user, or another cause; "" for an anonymous caller
    subject   the changed object: `user alice`, or an entity as `Systems.Security.Roles(guid)`
    content   JSON object with sorted keys, as text: what is hashed is what is stored
    seal      keyed checksum by the process that wrote the entry (audit.hashing)
    position  place in the chain, from 1 without gaps; null until it is chained
    hash      hexadecimal SHA-256 of the hash at the position before, and of this row
    """

    kind = models.CharField(_("Kind"), max_length=64)
    at = models.DateTimeField(_("Time"), default=utc_now, db_index=True)
    actor = models.CharField(_("Actor"), max_length=MAX_NAME, blank=True)
    subject = models.CharField(_("Subject"), max_length=MAX_NAME, blank=True)
    content = models.TextField(_("Content"))
    seal = models.CharField(max_length=64)
    position = models.BigIntegerField(_("Position"), null=True, unique=True)
    hash = models.CharField(_("Hash"), max_length=64, blank=True)

    objects: ClassVar[models.Manager[AuditEntry]]

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        indexes = [
            models.Index(fields=["id"], condition=Q(position=None), name="audit_entry_unchained"),
            models.Index(fields=["kind", "id"], name="audit_entry_kind"),
            models.Index(fields=["actor", "id"], name="audit_entry_actor"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}".rstrip()


class AuditHead(models.Model):
    """The signed end of the chain at a time. A stub is the head up to which older entries were pruned.

    kid    the key that signed it
    token  signed claims (JWS, compact): position, hash, at; of a stub also `pruned`, the number of entries
    seal   keyed checksum as of an entry: write access to the database, and so to its public keys, cannot forge it
    """

    position = models.BigIntegerField(_("Position"))
    hash = models.CharField(_("Hash"), max_length=64)
    at = models.DateTimeField(_("Time"))
    is_stub = models.BooleanField(default=False)
    kid = models.CharField(_("Key"), max_length=64)
    token = models.TextField()
    seal = models.CharField(max_length=64)

    objects: ClassVar[models.Manager[AuditHead]]

    class Meta:
        ordering = ["position", "is_stub"]
        constraints = [models.UniqueConstraint(fields=["position", "is_stub"], name="audit_head_position")]

    def __str__(self) -> str:
        return f"{self.position} {self.hash}"
