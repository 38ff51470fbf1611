"""Heartbeats of the worker processes, for `/readyz`, `/metrics` and the admin (spec 09, 9.3).

A process writes them when it runs tasks: in each cluster at least every sweep_seconds. They are in the database, not in
the cache, because it is all that web nodes and worker nodes must share.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import datetime, timedelta
from multiprocessing import util

from foundation.fields import utc_now
from foundation.per_process import process_name
from webhooks.models import WorkerHeartbeat

#: Interval of heartbeats.
BEAT_SECONDS = 5.0
#: A worker without a heartbeat for this time counts as dead; long enough for a locked database.
ALIVE_SECONDS = 30.0
#: Rows of workers that ended without notice are deleted after this time.
_RETENTION = timedelta(hours=1)


_beats: dict[int, float] = {}


def heartbeat_send() -> None:
    """Write the heartbeat of this process if it is due; it is deleted when the process ends."""
    pid, now = os.getpid(), time.monotonic()
    if pid not in _beats:
        _beats.clear()  # those of the parent process
        util.Finalize(None, heartbeat_end, args=(process_name(),), exitpriority=100)
    if now - _beats.get(pid, -BEAT_SECONDS) >= BEAT_SECONDS:
        _beats[pid] = now
        heartbeat_write(process_name())


def heartbeat_write(worker: str, *, now: datetime | None = None) -> None:
    """Write the heartbeat of this worker."""
    moment = now or utc_now()
    if not WorkerHeartbeat.objects.filter(pk=worker).update(seen_at=moment):
        WorkerHeartbeat.objects.filter(seen_at__lt=moment - _RETENTION).delete()
        WorkerHeartbeat.objects.update_or_create(worker=worker, defaults={"seen_at": moment})


def heartbeat_end(worker: str) -> None:
    """Delete the heartbeat of a worker that stops. Never raises: it expires anyway."""
    with suppress(Exception):
        WorkerHeartbeat.objects.filter(pk=worker).delete()
