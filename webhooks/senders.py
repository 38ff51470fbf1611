"""Threads that send deliveries over the network, and do not delay the end of the process.

Not a ThreadPoolExecutor: the interpreter waits for its threads at exit, so a slow receiver would keep a stopping worker
alive until it is killed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from webhooks.lease import Lease
from webhooks.send import Outcome


class Senders:
    """Daemon threads, one for each lease in flight. `finished` has (lease, outcome) of sent deliveries."""

    def __init__(self, send: Callable[[Lease], Outcome]) -> None:
        self.finished: SimpleQueue[tuple[Lease, Outcome]] = SimpleQueue()
        self._send = send
        self._waiting: SimpleQueue[Lease | None] = SimpleQueue()
        self._threads = 0

    def submit(self, leases: Sequence[Lease], *, in_flight: int) -> None:
        """Send these leases; `in_flight`: the number of leases in flight, including these."""
        for lease in leases:
            self._waiting.put(lease)
        for _ in range(in_flight - self._threads):
            self._threads += 1
            threading.Thread(target=self._run, name="webhook-send", daemon=True).start()

    def end(self) -> None:
        """End the threads after their current leases."""
        for _ in range(self._threads):
            self._waiting.put(None)

    def _run(self) -> None:
        while (lease := self._waiting.get()) is not None:
            self.finished.put((lease, self._send(lease)))
