"""Tasks of the audit chain (django-q2). Each is idempotent, and may run on several nodes at once."""

from __future__ import annotations

from django.db import OperationalError
from django_q.models import Schedule

from audit.chain import entries_chain, head_write
from audit.pruning import entries_prune
from foundation.cluster import every
from foundation.lock_waits import is_locked
from foundation.pruning import scheduled_pruning

#: Seconds between two tasks.
INTERVAL_SECONDS = 5.0
_TIMEOUT_SECONDS = 110


@every(lambda: INTERVAL_SECONDS, timeout_seconds=_TIMEOUT_SECONDS)
def chain() -> None:
    """Chain the committed entries; sign a head each minute."""
    try:
        entries_chain()
        head_write()
    except OperationalError as exc:
        if not is_locked(exc):  # a long transaction has SQLite's lock: the next task chains
            raise


prune = scheduled_pruning("audit: prune", f"{__name__}.prune", Schedule.DAILY, {"audit_entries": entries_prune})
