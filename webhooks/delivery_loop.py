"""The delivery loop, one in each worker process of the task cluster.

django-q2 runs schedules about every 30 seconds, too rarely for retries and for deliveries that were not announced
("every few seconds", spec 06, 6.2), and a task that sends would occupy a whole worker process while a slow host
answers. So each worker process has a delivery loop beside its task loop: one thread that uses the database, and a pool
of threads that only use the network. The task `deliver(id)` only wakes it.

    wake-up or sweep → lease what is due, a batch → send, many at once → record outcomes, a batch → lease again …

A batch needs one connection and two short database transactions, however many attempts are under way. The loop leases
only as many as it can send at once, so memory does not grow with the length of the queue.

Measured on two busy cores (SQLite, two worker processes, receiver on loopback): commit to request p50 130 ms, mostly
the task queue's polling; 1.3 ms of processor time a delivery. `bench/webhooks.py` measures it again.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import util as multiprocessing_util
from queue import Empty

from django.db import connections

from webhooks.conf import webhook_settings
from webhooks.heartbeat import BEAT_SECONDS, heartbeat_end, heartbeat_write
from webhooks.lease import Lease, deliveries_lease, leases_expire, leases_release
from webhooks.record import Finished, deliveries_record, worker_name
from webhooks.send import Outcome, delivery_send
from webhooks.senders import Senders

logger = logging.getLogger(__name__)

#: A stopping worker waits this long for attempts under way, and releases its other leases.
STOP_SECONDS = 5.0
_PAUSE_AFTER_ERROR_SECONDS = 1.0
#: With this many attempts under way the loop collects outcomes for this long before its next turn.
_BUSY = 4
_GATHER_SECONDS = 0.01


class DeliveryLoop:
    """The loop. `start` and `stop` belong to the thread that made it; any thread may call `wake`."""

    def __init__(self, send: Callable[[Lease], Outcome] = delivery_send) -> None:
        self._senders = Senders(webhook_settings().concurrency, send, self.wake)
        self._woken = threading.Event()
        self._give_up_at: float | None = None
        self._under_way: dict[str, Lease] = {}
        self._unrecorded: list[Finished] = []
        self._thread = threading.Thread(target=self._run, name="webhook-delivery", daemon=True)
        self._swept_at = 0.0
        self._beat_at = 0.0

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Start the next turn now."""
        self._woken.set()

    def stop(self, *, patience_seconds: float = STOP_SECONDS) -> None:
        """Stop leasing, release unsent leases, let attempts under way finish and be recorded, then end."""
        self._give_up_at = time.monotonic() + patience_seconds
        self._woken.set()
        self._thread.join(patience_seconds + 2)

    @property
    def is_alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._is_done():
                try:
                    self._run_once()
                except Exception:
                    # The database is busy, restarting or unavailable. Nothing is lost: leases expire, then rows are
                    # due.
                    logger.exception("webhook delivery: a turn failed")
                    connections.close_all()
                    time.sleep(_PAUSE_AFTER_ERROR_SECONDS)
            with suppress(Exception):  # remaining leases and rows expire by themselves
                leases_release(list(self._under_way.values()))
                heartbeat_end(worker_name())
        finally:
            connections.close_all()

    def _is_done(self) -> bool:
        if self._give_up_at is None:
            return False
        return not (self._under_way or self._unrecorded) or time.monotonic() >= self._give_up_at

    def _run_once(self) -> None:
        """Record outcomes, lease deliveries, then wait."""
        if len(self._under_way) >= _BUSY:
            # Others will end within a moment: one turn for all costs little more than one for each.
            time.sleep(_GATHER_SECONDS)
        self._woken.clear()
        self._record()
        if self._give_up_at is None:
            self._write_heartbeat()
            self._sweep()
            self._lease()
        else:
            self._release_unsent()
        if self._senders.finished.empty() and not self._is_done():
            left = math.inf if self._give_up_at is None else self._give_up_at - time.monotonic()
            self._woken.wait(max(0.0, min(webhook_settings().sweep_seconds, left)))

    def _record(self) -> None:
        while True:
            try:
                finished = self._senders.finished.get_nowait()
            except Empty:
                break
            self._unrecorded.append(finished)
            self._under_way.pop(finished[0].delivery_id, None)
        if self._unrecorded:
            deliveries_record(self._unrecorded)
            self._unrecorded = []

    def _write_heartbeat(self) -> None:
        """Write a heartbeat when it is due."""
        now = time.monotonic()
        if now - self._beat_at >= BEAT_SECONDS:
            self._beat_at = now
            heartbeat_write(worker_name(), under_way=len(self._under_way))

    def _sweep(self) -> None:
        """Expire leases of dead workers when it is due."""
        now = time.monotonic()
        if now - self._swept_at >= webhook_settings().sweep_seconds:
            self._swept_at = now
            leases_expire()

    def _lease(self) -> None:
        room = webhook_settings().concurrency - len(self._under_way)
        if room <= 0:
            return
        leases = deliveries_lease(room)
        self._under_way.update((lease.delivery_id, lease) for lease in leases)
        self._senders.take(leases)

    def _release_unsent(self) -> None:
        """Release leases that no sender has begun: another worker may take them."""
        unsent = self._senders.take_unsent()
        for lease in unsent:
            self._under_way.pop(lease.delivery_id, None)
        leases_release(unsent)


_loop: tuple[int, DeliveryLoop] | None = None


def process_delivery_loop() -> DeliveryLoop | None:
    """This process's delivery loop; None in web processes."""
    if _loop is None or _loop[0] != os.getpid() or not _loop[1].is_alive:
        return None
    return _loop[1]


def start_in_worker(**kwargs: object) -> None:
    """Start a delivery loop in a worker process that django-q2 has forked, and stop it in order with the process."""
    global _loop
    loop = DeliveryLoop()
    loop.start()
    _loop = (os.getpid(), loop)
    # Runs when the worker leaves its loop (recycled, or the cluster stops), before the process ends.
    multiprocessing_util.Finalize(None, loop.stop, exitpriority=100)


def deliver_due(limit: int = 100, *, send: Callable[[Lease], Outcome] = delivery_send) -> Sequence[Finished]:
    """Lease, send and record once, sequentially: for commands, tests and clusters without a delivery loop."""
    leases_expire()
    finished = [(lease, send(lease)) for lease in deliveries_lease(limit)]
    if finished:
        deliveries_record(finished)
    return finished
