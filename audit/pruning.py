"""Deletes entries past their retention; a signed stub records the start of the remaining chain."""

from __future__ import annotations

import datetime

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from audit.actors import PLATFORM
from audit.chain import Tail, chain_lock, head_make, stub_get
from audit.kinds import ENTITY_MANAGEMENT, EntryKind, Ocsf, entry_kinds
from audit.models import AuditEntry, AuditHead
from audit.record import record
from foundation.fields import utc_now

#: Rows deleted by one statement: on SQLite each blocks the other writers for some milliseconds.
_AT_ONCE = 2_000


@entry_kinds.register
class EntriesPruned(EntryKind):
    """Old entries were deleted."""

    name = "audit.pruned"
    title = _("Old audit entries deleted")
    ocsf = Ocsf(ENTITY_MANAGEMENT, 4)


def entries_prune(*, now: datetime.datetime | None = None) -> int:
    """Delete entries older than AUDIT_RETENTION_DAYS (0: never), up to a signed head; returns their number.

    The stub is committed first. After a crash the next call deletes the remaining entries before it.
    """
    now = now or utc_now()
    if settings.AUDIT_RETENTION_DAYS:
        _stub_move(now - datetime.timedelta(days=settings.AUDIT_RETENTION_DAYS), now)
    stub = stub_get()
    return 0 if stub is None else _delete_until(stub.position)


def _stub_move(oldest: datetime.datetime, now: datetime.datetime) -> None:
    """Move the stub to the newest head before the first entry within the retention."""
    with chain_lock() as has_lock:
        if not has_lock:
            return
        stub = stub_get()
        kept = AuditEntry.objects.filter(position__isnull=False, at__gte=oldest).order_by("position").first()
        heads = AuditHead.objects.filter(is_stub=False, at__lt=now).order_by("-position")
        if kept is not None:
            heads = heads.filter(position__lt=kept.position)
        head = heads.first()
        begin = stub.position if stub is not None else 0
        if head is None or head.position <= begin:
            return
        AuditHead.objects.filter(is_stub=True).delete()
        head_make(Tail(head.position, head.hash), now, pruned=head.position)
        AuditHead.objects.filter(is_stub=False, position__lt=head.position).delete()
        record(EntriesPruned, by=PLATFORM, fromPosition=begin + 1, toPosition=head.position, hash=head.hash)


def _delete_until(position: int) -> int:
    deleted = 0
    while ids := list(AuditEntry.objects.filter(position__lte=position).values_list("pk", flat=True)[:_AT_ONCE]):
        deleted += AuditEntry.objects.filter(pk__in=ids).delete()[0]
    return deleted
