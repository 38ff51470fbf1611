"""Heartbeats of the worker processes, for `/readyz`, `/metrics` and people (spec 09, 9.3).

A process writes them with the tasks that it runs: in each cluster there is one at least every sweep_seconds. In the
database, not the cache: web nodes and worker nodes need not share anything else.
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
_FORGET = timedelta(hours=1)


_beats: dict[int, float] = {}


def heartbeat_beat() -> None:
    """Record that this process works, if the next heartbeat is due; the last heartbeat ends with the process."""
    pid, now = os.getpid(), time.monotonic()
    if pid not in _beats:
        _beats.clear()  # of the process that forked this one
        util.Finalize(None, heartbeat_end, args=(process_name(),), exitpriority=100)
    if now - _beats.get(pid, -BEAT_SECONDS) >= BEAT_SECONDS:
        _beats[pid] = now
        heartbeat_write(process_name())


def heartbeat_write(worker: str, *, now: datetime | None = None) -> None:
    """Record that this worker runs."""
    moment = now or utc_now()
    if not WorkerHeartbeat.objects.filter(pk=worker).update(seen_at=moment):
        WorkerHeartbeat.objects.filter(seen_at__lt=moment - _FORGET).delete()
        WorkerHeartbeat.objects.update_or_create(worker=worker, defaults={"seen_at": moment})


def heartbeat_end(worker: str) -> None:
    """Delete the heartbeat of a worker that stops. Never raises: it ages by itself."""
    with suppress(Exception):
        WorkerHeartbeat.objects.filter(pk=worker).delete()
