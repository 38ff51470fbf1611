"""Threads that send deliveries over the network, and do not delay the end of the process.

Not a ThreadPoolExecutor: the interpreter waits for its threads at exit, so a slow receiver would keep a stopping worker
alive until it is killed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from webhooks.lease import Lease
from webhooks.send import Outcome


class Senders:
    """Up to `limit` daemon threads, started on demand. `finished` has (lease, outcome) of sent deliveries."""

    def __init__(self, limit: int, send: Callable[[Lease], Outcome], tell: Callable[[], None]) -> None:
        self.finished: SimpleQueue[tuple[Lease, Outcome]] = SimpleQueue()
        self._limit = limit
        self._send = send
        self._tell = tell
        self._waiting: SimpleQueue[Lease] = SimpleQueue()
        self._threads = 0
        self._open = 0  # number of leases that are taken and not finished; more threads would be idle
        self._lock = threading.Lock()

    def take(self, leases: Sequence[Lease]) -> None:
        """Send these as soon as a thread is free."""
        with self._lock:
            self._open += len(leases)
            more = min(self._open, self._limit) - self._threads
            self._threads += max(0, more)
        for lease in leases:
            self._waiting.put(lease)
        for _ in range(more):
            threading.Thread(target=self._run, name="webhook-send", daemon=True).start()

    def take_unsent(self) -> list[Lease]:
        """Return the leases that no thread has begun."""
        unsent = []
        try:
            while True:
                unsent.append(self._waiting.get_nowait())
        except Empty:
            with self._lock:
                self._open -= len(unsent)
            return unsent

    def _run(self) -> None:
        while True:
            lease = self._waiting.get()
            outcome = self._send(lease)
            with self._lock:
                self._open -= 1
            self.finished.put((lease, outcome))
            self._tell()
