"""Signs of life of the worker processes, for `/readyz`, `/metrics` and people (spec 09, 9.3).

In the database and not in the cache: web nodes and worker nodes need not share anything else.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from foundation.fields import utc_now
from webhooks.models import WorkerHeartbeat

#: Written so often …
BEAT_SECONDS = 5.0
#: … a worker that was not heard of for so long is taken for dead; a database that is locked for a while kills nobody.
ALIVE_SECONDS = 30.0
#: Rows of workers that ended without a word are removed after.
_FORGET = timedelta(hours=1)


def heartbeat_write(worker: str, *, under_way: int, now: datetime | None = None) -> None:
    """This worker lives."""
    moment = now or utc_now()
    values = {"seen_at": moment, "under_way": under_way}
    if not WorkerHeartbeat.objects.filter(pk=worker).update(**values):
        WorkerHeartbeat.objects.filter(seen_at__lt=moment - _FORGET).delete()
        WorkerHeartbeat.objects.update_or_create(worker=worker, defaults=values)


def heartbeat_end(worker: str) -> None:
    """This worker ends in order."""
    WorkerHeartbeat.objects.filter(pk=worker).delete()
