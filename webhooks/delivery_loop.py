"""The body of the task `webhooks.tasks.deliver`: sends what is due, until nothing is due or under way.

A commit enqueues the task, and the cluster runs it every sweep_seconds: so retries, deliveries that were not announced
and those of dead workers become tasks when they are due (spec 06, 6.2). One run sends many at once, because a worker
process has one task at a time and a slow host may answer after minutes:

    lease what is due, a batch → send, each in a thread → record outcomes, a batch → lease again …

A batch needs one connection and two short database transactions, however many attempts are under way. A run leases only
as many as it can send at once, so memory does not grow with the length of the queue.

While a run waits for answers it leases what becomes due. So in one cluster one run is enough, and other runs end at
once, unless deliveries wait longer than LATE_SECONDS: the other worker processes have time for other tasks. After
LEASE_SECONDS a run leases no more, and ends with its last attempt.

Measured on two busy cores (SQLite, two worker processes, receiver on loopback): commit to request p50 104 ms, mostly
the queue's polling; 1.4 ms of processor time a delivery. `bench/webhooks.py` measures it again.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from queue import Empty

from django.db import DatabaseError, InterfaceError, OperationalError, connections

from foundation.cluster import SharedNumber, cluster_is_stopping
from foundation.fields import utc_now
from webhooks.announcer import enqueue
from webhooks.conf import webhook_settings
from webhooks.heartbeat import heartbeat_beat
from webhooks.lease import Lease, deliveries_lease, leases_expire, leases_release, queues_ready
from webhooks.record import Finished, deliveries_record
from webhooks.send import Outcome, delivery_send
from webhooks.senders import Senders

logger = logging.getLogger(__name__)

LEASE_SECONDS = 10.0
LATE_SECONDS = 0.5
#: A run of a stopping cluster waits this long for attempts under way, and releases its leases.
STOP_SECONDS = 5.0
#: A run that waits for answers looks for due deliveries so often.
_LOOK_SECONDS = 0.1
#: Each turn of a run tells the others that it will lease for so long; its process may be killed.
_LEASES_ON_SECONDS = 1.0
_PAUSE_AFTER_ERROR_SECONDS = 1.0
#: With this many attempts under way the run collects outcomes for this long before its next turn.
_BUSY = 4
_GATHER_SECONDS = 0.01
#: Until when a run of this cluster leases, by the monotonic clock.
_leased_until = SharedNumber()
#: When a run of this cluster last began to lease, by the system's clock.
_leased_at = SharedNumber()


class DeliveryLoop:
    """One run, in the thread that calls `run`; `is_stopping` and its patience end it early."""

    def __init__(
        self,
        send: Callable[[Lease], Outcome] = delivery_send,
        *,
        is_stopping: Callable[[], bool] = cluster_is_stopping,
        patience_seconds: float = STOP_SECONDS,
    ) -> None:
        self._senders = Senders(send)
        self._is_stopping = is_stopping
        self._patience_seconds = patience_seconds
        self._under_way: dict[str, Lease] = {}
        self._unrecorded: list[Finished] = []
        self._lease_until = time.monotonic() + LEASE_SECONDS
        self._swept_at = 0.0
        self._enqueue_at = [time.monotonic() + LATE_SECONDS, self._lease_until]
        self._give_up_at = math.inf

    def run(self) -> None:
        """Deliver. Raises what the database raises while nothing is under way; otherwise it tries again."""
        if self._is_stopping() or (_leased_until.value > time.monotonic() and not _is_late()):
            return
        going = True
        try:
            while going:
                try:
                    going = self._turn()
                except Exception:
                    # The database is busy, restarting or unavailable: leases expire, then rows are due again.
                    connections.close_all()
                    if not self._under_way and not self._unrecorded:
                        raise
                    logger.exception("webhook delivery: a turn failed")
                    time.sleep(_PAUSE_AFTER_ERROR_SECONDS)
        finally:
            self._senders.end()
            with suppress(Exception):
                leases_release(list(self._under_way.values()))

    def _turn(self) -> bool:
        """Wait for outcomes, record them, lease; returns whether something is under way, and worth waiting for."""
        self._wait()
        if self._unrecorded:
            self._record()
        heartbeat_beat()
        if self._is_stopping():
            self._give_up_at = min(self._give_up_at, time.monotonic() + self._patience_seconds)
        elif time.monotonic() < self._lease_until:
            self._lease(leased_until=time.monotonic() + _LEASES_ON_SECONDS)
            if not self._under_way:  # Once more: other runs may have left a delivery to this one just now.
                self._lease(leased_until=0)
        self._enqueue_another()
        return bool(self._under_way) and time.monotonic() < self._give_up_at

    def _record(self) -> None:
        """Record the outcomes: all together, or one by one where the database refuses one of them.

        Raises what the database raises while it is busy or away; the outcomes are recorded later.
        """
        try:
            deliveries_record(self._unrecorded)
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError:
            while self._unrecorded:
                try:
                    deliveries_record(self._unrecorded[:1])
                except (OperationalError, InterfaceError):
                    raise
                except DatabaseError:
                    # Its delivery was deleted meanwhile, or comes again when the lease has expired.
                    logger.exception(
                        "webhook: an outcome could not be recorded",
                        extra={"delivery": self._unrecorded[0][0].delivery_id},
                    )
                del self._unrecorded[0]
        self._unrecorded = []

    def _wait(self) -> None:
        """Collect outcomes; with many attempts under way, those of the next moment too: one turn for all costs little
        more than one for each.
        """
        if not self._under_way:
            return
        if len(self._under_way) >= _BUSY:
            time.sleep(_GATHER_SECONDS)
        with suppress(Empty):
            finished = self._senders.finished.get(timeout=_LOOK_SECONDS)
            while True:
                self._unrecorded.append(finished)
                self._under_way.pop(finished[0].delivery_id, None)
                finished = self._senders.finished.get_nowait()

    def _lease(self, *, leased_until: float) -> None:
        _leased_until.value = leased_until
        _leased_at.value = time.time()
        now = time.monotonic()
        if now - self._swept_at >= webhook_settings().sweep_seconds:
            self._swept_at = now
            leases_expire()
        room = webhook_settings().concurrency - len(self._under_way)
        if room > 0:
            leases = deliveries_lease(room)
            self._under_way.update((lease.delivery_id, lease) for lease in leases)
            self._senders.take(leases, under_way=len(self._under_way))

    def _enqueue_another(self) -> None:
        """Enqueue another task when there is more than this run can send, and when this run leases no more."""
        if self._enqueue_at and time.monotonic() >= self._enqueue_at[0]:
            del self._enqueue_at[0]
            if not self._enqueue_at:
                _leased_until.value = 0
            if not self._is_stopping() and _is_late():
                enqueue()


def has_looked(since: float) -> bool:
    """Whether a run of this cluster has leased deliveries after that time: it has met everything committed before.

    Without it the tasks of many commits, which wait while a run takes long, would each become a run, and tasks of
    others would wait for all of them. Commits of a node with another clock may wait for the next sweep.
    """
    return since < _leased_at.value <= time.time()


def _is_late() -> bool:
    """Whether something has waited for longer than a run usually takes to lease it."""
    return bool(queues_ready(utc_now() - timedelta(seconds=LATE_SECONDS)))
