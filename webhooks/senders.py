"""The threads that send: they only talk to the network, and they hold up no process that wants to end.

Not a ThreadPoolExecutor: its threads are waited for when the interpreter ends, and a receiver that takes its time would
then keep a stopping worker alive until somebody kills it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from webhooks.claim import Claim
from webhooks.send import Outcome


class Senders:
    """Up to `limit` daemon threads, started as they are needed. `finished` has (claim, outcome) of what was sent."""

    def __init__(self, limit: int, send: Callable[[Claim], Outcome], tell: Callable[[], None]) -> None:
        self.finished: SimpleQueue[tuple[Claim, Outcome]] = SimpleQueue()
        self._limit = limit
        self._send = send
        self._tell = tell
        self._waiting: SimpleQueue[Claim] = SimpleQueue()
        self._threads = 0
        self._open = 0  # claims that were taken and are not finished; threads beyond them would have nothing to do
        self._lock = threading.Lock()

    def take(self, claims: Sequence[Claim]) -> None:
        """Send these as soon as a thread is free."""
        with self._lock:
            self._open += len(claims)
            more = min(self._open, self._limit) - self._threads
            self._threads += max(0, more)
        for claim in claims:
            self._waiting.put(claim)
        for _ in range(more):
            threading.Thread(target=self._run, name="webhook-send", daemon=True).start()

    def give_up(self) -> list[Claim]:
        """Take back what no thread has begun with."""
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
            claim = self._waiting.get()
            outcome = self._send(claim)
            with self._lock:
                self._open -= 1
            self.finished.put((claim, outcome))
            self._tell()
