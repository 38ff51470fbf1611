"""The loop that delivers, one in each worker process of the task cluster.

django-q2 runs schedules about every 30 seconds, which is too coarse for retries and for finding what was not announced
("every few seconds", spec 06, 6.2), and a task that sends would hold a whole worker process while a slow host answers.
So each worker process has a pump beside its task loop: one thread that talks to the database, and a pool of threads
that only talk to the network. The task `deliver(id)` merely wakes it.

    wake-up or sweep → claim what is due, a batch → send, many at once → record outcomes, a batch → claim again …

One connection and two short database transactions a batch, however many attempts are under way. What it claims is
bounded by what it can send at once, so that memory does not follow the length of the queue.

Measured on two busy cores (SQLite, two worker processes, receiver on loopback): commit to request p50 130 ms, most of
it the task queue's polling; 1.3 ms of processor time a delivery. `bench/webhooks.py` measures it again.
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

from webhooks.claim import Claim, claims_release, deliveries_claim, leases_expire
from webhooks.conf import webhook_settings
from webhooks.heartbeat import BEAT_SECONDS, heartbeat_end, heartbeat_write
from webhooks.record import Finished, deliveries_record, worker_name
from webhooks.send import Outcome, delivery_send
from webhooks.senders import Senders

logger = logging.getLogger(__name__)

#: A worker that is told to stop lets attempts under way finish for so long; the others' claims it hands back.
STOP_SECONDS = 5.0
_PAUSE_AFTER_ERROR_SECONDS = 1.0
#: With so many attempts under way the loop lets outcomes gather for so long before it takes a turn.
_BUSY = 4
_GATHER_SECONDS = 0.01


class Pump:
    """One loop. `start` and `stop` belong to the thread that made it; `wake` to everybody."""

    def __init__(self, send: Callable[[Claim], Outcome] = delivery_send) -> None:
        self._senders = Senders(webhook_settings().concurrency, send, self.wake)
        self._woken = threading.Event()
        self._give_up_at: float | None = None
        self._under_way: dict[str, Claim] = {}
        self._unrecorded: list[Finished] = []
        self._thread = threading.Thread(target=self._run, name="webhook-pump", daemon=True)
        self._swept_at = 0.0
        self._beat_at = 0.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """There is something to do now."""
        self._woken.set()

    def stop(self, *, patience_seconds: float = STOP_SECONDS) -> None:
        """Claim nothing more, hand back what was not sent, let attempts under way finish and be recorded, then end."""
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
                    self._turn()
                except Exception:
                    # The database is busy, restarting or gone: nothing is lost, what is claimed has its lease.
                    logger.exception("webhook pump: a turn failed")
                    connections.close_all()
                    time.sleep(_PAUSE_AFTER_ERROR_SECONDS)
            with suppress(Exception):  # leases and rows that stay end by themselves
                claims_release(list(self._under_way.values()))
                heartbeat_end(worker_name())
        finally:
            connections.close_all()

    def _is_done(self) -> bool:
        if self._give_up_at is None:
            return False
        return not (self._under_way or self._unrecorded) or time.monotonic() >= self._give_up_at

    def _turn(self) -> None:
        """Record, claim, and wait for news."""
        if len(self._under_way) >= _BUSY:
            # Others will end within a moment: a turn for all of them costs little more than one for each.
            time.sleep(_GATHER_SECONDS)
        self._woken.clear()
        self._record()
        if self._give_up_at is None:
            self._beat()
            self._sweep()
            self._claim()
        else:
            self._hand_back()
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

    def _beat(self) -> None:
        """Now and then: a sign of life."""
        now = time.monotonic()
        if now - self._beat_at >= BEAT_SECONDS:
            self._beat_at = now
            heartbeat_write(worker_name(), under_way=len(self._under_way))

    def _sweep(self) -> None:
        """Now and then: leases of workers that died."""
        now = time.monotonic()
        if now - self._swept_at >= webhook_settings().sweep_seconds:
            self._swept_at = now
            leases_expire()

    def _claim(self) -> None:
        room = webhook_settings().concurrency - len(self._under_way)
        if room <= 0:
            return
        claims = deliveries_claim(room)
        self._under_way.update((claim.delivery_id, claim) for claim in claims)
        self._senders.take(claims)

    def _hand_back(self) -> None:
        """What no sender has begun with: another worker may have it now."""
        unsent = self._senders.give_up()
        for claim in unsent:
            self._under_way.pop(claim.delivery_id, None)
        claims_release(unsent)


_pump: tuple[int, Pump] | None = None


def process_pump() -> Pump | None:
    """This process's pump; None where there is none, as in web processes."""
    if _pump is None or _pump[0] != os.getpid() or not _pump[1].is_alive:
        return None
    return _pump[1]


def start_in_worker(**kwargs: object) -> None:
    """Called when django-q2 has forked a worker process: give it a pump that ends with it, in order."""
    global _pump
    pump = Pump()
    pump.start()
    _pump = (os.getpid(), pump)
    # Runs when the worker leaves its loop (recycled, or the cluster stops), before the process ends.
    multiprocessing_util.Finalize(None, pump.stop, exitpriority=100)


def deliver_due(limit: int = 100, *, send: Callable[[Claim], Outcome] = delivery_send) -> Sequence[Finished]:
    """Claim, send and record once, here and now, one after another: for commands, tests and clusters without a pump."""
    leases_expire()
    finished = [(claim, send(claim)) for claim in deliveries_claim(limit)]
    if finished:
        deliveries_record(finished)
    return finished
