"""Heartbeats of the worker processes, for `/readyz`, `/metrics` and people (spec 09, 9.3).

In the database, not the cache: web nodes and worker nodes need not share anything else.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from foundation.fields import utc_now
from webhooks.models import WorkerHeartbeat

#: Interval of heartbeats.
BEAT_SECONDS = 5.0
#: A worker without a heartbeat for this time counts as dead; long enough for a locked database.
ALIVE_SECONDS = 30.0
#: Rows of workers that ended without notice are deleted after this time.
_FORGET = timedelta(hours=1)


def heartbeat_write(worker: str, *, under_way: int, now: datetime | None = None) -> None:
    """Record that this worker runs."""
    moment = now or utc_now()
    values = {"seen_at": moment, "under_way": under_way}
    if not WorkerHeartbeat.objects.filter(pk=worker).update(**values):
        WorkerHeartbeat.objects.filter(seen_at__lt=moment - _FORGET).delete()
        WorkerHeartbeat.objects.update_or_create(worker=worker, defaults=values)


def heartbeat_end(worker: str) -> None:
    """Delete the heartbeat of a worker that stops."""
    WorkerHeartbeat.objects.filter(pk=worker).delete()
