"""Waking the workers without making the caller wait: one small thread in each process that commits webhooks.

Telling the task queue takes about as long as everything else that a webhook adds to a commit. So the commit only leaves
its ids here, and the thread tells the queue a moment later, once for all that came meanwhile: at rest every commit is
announced by itself within milliseconds, and under load a busy process sends a few messages a second and not hundreds.

What is lost here by a crash is found by the workers' own sweep, as everything else that is lost on this way.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from django_q.tasks import async_task

logger = logging.getLogger(__name__)

#: The thread lets whoever commits finish their answer first: both need the interpreter.
_PAUSE_BEFORE_SECONDS = 0.003
#: At most so often a process tells the queue.
_PAUSE_AFTER_SECONDS = 0.05
#: Deliveries that one message names; the workers find the others by themselves.
NAMED_MAX = 50
_STOP_SECONDS = 1.0


class Announcer:
    """A queue of ids and the thread that empties it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._ids: SimpleQueue[str | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="webhook-announcer", daemon=True)
        self._thread.start()

    def tell(self, delivery_ids: Sequence[str]) -> None:
        """Leave ids; returns at once."""
        for delivery_id in delivery_ids[:NAMED_MAX]:
            self._ids.put(delivery_id)

    def stop(self) -> None:
        """Tell what is left, then end: short-lived commands commit too."""
        self._ids.put(None)
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        going = True
        while going:
            found = [self._ids.get()]
            if found[0] is not None:
                time.sleep(_PAUSE_BEFORE_SECONDS)
            with suppress(Empty):
                while True:
                    found.append(self._ids.get_nowait())
            going = None not in found
            ids = [delivery_id for delivery_id in found if delivery_id is not None]
            if ids:
                enqueue(ids[:NAMED_MAX])
            if going:
                time.sleep(_PAUSE_AFTER_SECONDS)


def enqueue(delivery_ids: Sequence[str]) -> None:
    """Put the task into the queue. Never raises: the deliveries are in the database."""
    try:
        # Its result is the delivery's own row; the queue keeps none.
        async_task("webhooks.tasks.deliver", *delivery_ids, save=False, ack_failure=True)
    except Exception:
        logger.warning("webhook workers could not be woken; their sweep will find the deliveries", exc_info=True)


_lock = threading.Lock()
_announcer: Announcer | None = None


def tell_workers(delivery_ids: Sequence[str]) -> None:
    """Wake a worker soon."""
    global _announcer
    announcer = _announcer
    if announcer is None or announcer.pid != os.getpid():  # web servers fork
        with _lock:
            announcer = _announcer
            if announcer is None or announcer.pid != os.getpid():
                announcer = _announcer = Announcer()
                atexit.register(announcer.stop)
    announcer.tell(delivery_ids)
