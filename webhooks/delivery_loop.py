"""The body of the task `webhooks.tasks.deliver`: sends due deliveries until none is due or in flight.

A commit enqueues the task, and the cluster also runs it every sweep_seconds, for retries, deliveries that were not
announced and those of dead workers (spec 06, 6.2). One run sends many deliveries concurrently, because a worker process
has one task at a time and a slow host may respond after minutes:

    lease a batch of due deliveries → send each in a thread → record a batch of outcomes → lease again …

A batch needs one connection and two short database transactions, whatever the number of attempts in flight. A run
leases only as many as it can send concurrently, so memory does not grow with the length of the queue.

While a run waits for responses it leases newly due deliveries. So one run per cluster is enough, and other runs end at
once, unless deliveries wait longer than MAX_WAIT_SECONDS: the other worker processes have time for other tasks. After
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
from webhooks.announcer import announcer
from webhooks.conf import webhook_settings
from webhooks.heartbeat import heartbeat_send
from webhooks.lease import Lease, deliveries_lease, leases_expire, leases_release, queues_ready
from webhooks.record import Finished, deliveries_record
from webhooks.send import Outcome, delivery_send
from webhooks.senders import Senders

logger = logging.getLogger(__name__)

LEASE_SECONDS = 10.0
MAX_WAIT_SECONDS = 0.5
#: Time that a run of a stopping cluster waits for attempts in flight before it releases their leases.
STOP_SECONDS = 5.0
#: Interval of queries for due deliveries while a run waits for responses.
_POLL_SECONDS = 0.1
#: Time for which each step of a run announces that it leases; short, since its process may be killed.
_LEASES_ON_SECONDS = 1.0
_PAUSE_AFTER_ERROR_SECONDS = 1.0
#: With this many attempts in flight the run collects outcomes for _GATHER_SECONDS before its next step.
_BUSY = 4
_GATHER_SECONDS = 0.01
#: Time until which a run of this cluster leases (monotonic clock).
_leased_until = SharedNumber()
#: Time at which a run of this cluster last began to lease (system clock).
_leased_at = SharedNumber()


class DeliveryLoop:
    """One run, in the thread that calls `run`; ends at most patience_seconds after `is_stopping`."""

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
        self._in_flight: dict[str, Lease] = {}
        self._unrecorded: list[Finished] = []
        self._lease_until = time.monotonic() + LEASE_SECONDS
        self._swept_at = 0.0
        self._enqueue_at = [time.monotonic() + MAX_WAIT_SECONDS, self._lease_until]
        self._give_up_at = math.inf

    def run(self) -> None:
        """Deliver. Raises database errors if nothing is in flight; otherwise retries."""
        if self._is_stopping() or (_leased_until.value > time.monotonic() and not _has_overdue()):
            return
        is_running = True
        try:
            while is_running:
                try:
                    is_running = self._step()
                except Exception:
                    # The database is busy, restarting or unavailable; rows are due again once their leases expire.
                    connections.close_all()
                    if not self._in_flight and not self._unrecorded:
                        raise
                    logger.exception("webhook delivery: a step failed")
                    time.sleep(_PAUSE_AFTER_ERROR_SECONDS)
        finally:
            self._senders.end()
            with suppress(Exception):
                leases_release(list(self._in_flight.values()))

    def _step(self) -> bool:
        """Wait for outcomes, record them, lease; returns whether attempts are in flight and time is left."""
        self._wait()
        if self._unrecorded:
            self._record()
        heartbeat_send()
        if self._is_stopping():
            self._give_up_at = min(self._give_up_at, time.monotonic() + self._patience_seconds)
        elif time.monotonic() < self._lease_until:
            self._lease(leased_until=time.monotonic() + _LEASES_ON_SECONDS)
            if not self._in_flight:  # again: another run may have ended just now and relied on this one
                self._lease(leased_until=0)
        self._enqueue_another()
        return bool(self._in_flight) and time.monotonic() < self._give_up_at

    def _record(self) -> None:
        """Record the outcomes: all together, or one by one if the database refuses one of them.

        Raises database errors while the database is busy or unavailable; the outcomes are recorded later.
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
                    # Its delivery was deleted meanwhile, or is due again when the lease expires.
                    logger.exception(
                        "webhook: an outcome could not be recorded",
                        extra={"delivery": self._unrecorded[0][0].delivery_id},
                    )
                del self._unrecorded[0]
        self._unrecorded = []

    def _wait(self) -> None:
        """Collect outcomes. With many attempts in flight it waits for more first: a step for many costs little more
        than a step for one.
        """
        if not self._in_flight:
            return
        if len(self._in_flight) >= _BUSY:
            time.sleep(_GATHER_SECONDS)
        with suppress(Empty):
            finished = self._senders.finished.get(timeout=_POLL_SECONDS)
            while True:
                self._unrecorded.append(finished)
                self._in_flight.pop(finished[0].delivery_id, None)
                finished = self._senders.finished.get_nowait()

    def _lease(self, *, leased_until: float) -> None:
        _leased_until.value = leased_until
        _leased_at.value = time.time()
        now = time.monotonic()
        if now - self._swept_at >= webhook_settings().sweep_seconds:
            self._swept_at = now
            leases_expire()
        room = webhook_settings().concurrency - len(self._in_flight)
        if room > 0:
            leases = deliveries_lease(room)
            self._in_flight.update((lease.delivery_id, lease) for lease in leases)
            self._senders.submit(leases, in_flight=len(self._in_flight))

    def _enqueue_another(self) -> None:
        """Enqueue another task if more is due than this run can send, and when this run stops leasing."""
        if self._enqueue_at and time.monotonic() >= self._enqueue_at[0]:
            del self._enqueue_at[0]
            if not self._enqueue_at:
                _leased_until.value = 0
            if not self._is_stopping() and _has_overdue():
                announcer().call_another_run()


def has_leased_since(since: float) -> bool:
    """Whether a run of this cluster has leased deliveries after that time, so that earlier commits are handled.

    It makes tasks of many commits that wait for a long run end at once, so that other tasks do not wait for them.
    Commits of a node with another clock may wait for the next sweep.
    """
    return since < _leased_at.value <= time.time()


def _has_overdue() -> bool:
    """Whether a delivery has been due for longer than a run usually takes to lease it."""
    return bool(queues_ready(utc_now() - timedelta(seconds=MAX_WAIT_SECONDS)))
