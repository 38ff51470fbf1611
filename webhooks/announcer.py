"""Wakes the workers after commits, from one thread in each process that commits or delivers webhooks.

Enqueuing a task takes about as long as the rest of a webhook's work in a commit. So the commit only adds its ids to a
queue, and the thread enqueues one task for all of them: an idle process announces each commit within milliseconds, and
a busy process sends a few messages a second instead of hundreds.

A run that calls another one (webhooks.delivery_loop) uses the thread too: on SQLite the queue may be locked for as long
as busy_timeout, and meanwhile it would record no outcomes.

The workers' sweep finds deliveries whose announcement a crash has lost.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from django_q.tasks import async_task

from foundation.per_process import PerProcess

logger = logging.getLogger(__name__)

#: Pause in which the committing thread finishes its response: both need the interpreter lock.
_PAUSE_BEFORE_SECONDS = 0.003
#: Minimum interval between messages of a process.
_PAUSE_AFTER_SECONDS = 0.05
#: Maximum delivery ids in one message; the workers find the others by query.
NAMED_MAX = 50
_STOP_SECONDS = 1.0
#: In place of an id: a task that runs whatever other runs have leased.
_ANOTHER_RUN = ""
#: The task's timeout: longer than a run leases and the longest TimeoutSeconds of a template together.
TASK_SECONDS = 150


class Announcer:
    """A queue of ids and the thread that announces them."""

    def __init__(self) -> None:
        self._ids: SimpleQueue[str | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="webhook-announcer", daemon=True)
        self._thread.start()

    def announce(self, delivery_ids: Sequence[str]) -> None:
        """Add ids; returns at once."""
        for delivery_id in delivery_ids[:NAMED_MAX]:
            self._ids.put(delivery_id)

    def call_another_run(self) -> None:
        """Have another run enqueued, which ends at once only if nothing is overdue; returns at once."""
        self._ids.put(_ANOTHER_RUN)

    def stop(self) -> None:
        """Announce the remaining ids, then stop: short-lived commands commit too."""
        self._ids.put(None)
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        is_running = True
        while is_running:
            result = [self._ids.get()]
            if result[0] is not None:
                time.sleep(_PAUSE_BEFORE_SECONDS)
            with suppress(Empty):
                while True:
                    result.append(self._ids.get_nowait())
            is_running = None not in result
            ids = [delivery_id for delivery_id in result if delivery_id]
            if _ANOTHER_RUN in result:
                enqueue()
            if ids:
                enqueue(ids[:NAMED_MAX], since=time.time())
            if is_running:
                time.sleep(_PAUSE_AFTER_SECONDS)


def enqueue(delivery_ids: Sequence[str] = (), *, since: float | None = None) -> None:
    """Enqueue the task, which is skipped if a run has leased deliveries after `since` (time.time). Never raises: the
    deliveries are in the database.
    """
    try:
        # The delivery's row has the result; the queue stores none.
        options = {"save": False, "ack_failure": True, "timeout": TASK_SECONDS}
        async_task("webhooks.tasks.deliver", *delivery_ids, since=since, **options)
    except Exception:
        logger.warning("webhook workers could not be woken; their sweep will find the deliveries", exc_info=True)


@PerProcess
def announcer() -> Announcer:
    """The announcer of this process; announces the remaining ids when the process ends."""
    result = Announcer()
    atexit.register(result.stop)
    return result


def wake_workers(delivery_ids: Sequence[str]) -> None:
    """Wake a worker soon."""
    announcer().announce(delivery_ids)
