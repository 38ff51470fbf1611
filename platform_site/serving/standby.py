"""Of the server's threads one serves, as long as it can; the others stand by.

A process works on one request at a time (platform_site.serving.turns), but the server hands a request to whichever of
its threads is free. Under load that was another thread for each request: it first took the interpreter from the one
that worked, to learn that it had to wait, and then went on with a core that knew nothing of what it needed. Measured
on two cores: pages of 100 under 64 connections, 498 a second so and 773 from one thread.

So who has answered a request stands by while somebody else is there to take the next one: free, or in a request that
will go on without waiting for anything outside. A request that waits outside, or lets others go first, calls one of
those that stand by; it is not counted on again before it is answered, for two that wait for one another by turns would
each seem to be there. One whose body is late is taken for one that waits: most bodies are there already.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

#: Who stands by looks for itself after this time, should nobody have called; with nothing to do the server lets the
#: thread end soon after.
REST_SECONDS: Final = 10.0
#: A body that takes longer is late.
LATE_SECONDS: Final = 0.004
#: Bodies are watched as long as one came within this time.
_WATCH_SECONDS = 1.0

#: What the server calls in one of its threads for a request: (the way back to the client, the request).
Serve = Callable[[Any, dict[str, Any]], Any]


class Standby:
    """The threads of one process that requests are given to.

    ready   those that are free, or in a request and not aside: who can take the next request, now or when theirs is
            answered
    """

    def __init__(self, rest_seconds: float = REST_SECONDS, late_seconds: float = LATE_SECONDS) -> None:
        self._rest_seconds = rest_seconds
        self._late_seconds = late_seconds
        self._lock = threading.RLock()  # a thread may end, and be told of, in the middle
        self._ready = 0
        self._resting: list[threading.Lock] = []
        self._mine = threading.local()
        self._arriving: dict[_Known, float] = {}
        self._is_watching = False

    def serving(self, serve: Serve) -> Serve:
        """`serve`, after which the thread may stand by before it returns to the server for another request."""

        def served(protocol: Any, scope: dict[str, Any]) -> Any:
            if getattr(self._mine, "known", None) is None:
                self._mine.known = _Known(self)  # until the server lets the thread end
            try:
                answered = serve(protocol, scope)
            finally:
                self._come_back()
            # After an exception it returns at once: the server answers for it, and not before.
            self._rest()
            return answered

        return served

    def step_aside(self) -> None:
        """Until its request is answered this thread is not counted on. Others than the server's threads are not."""
        known: _Known | None = getattr(self._mine, "known", None)
        if known is not None and not known.aside:
            with self._lock:
                self._put_aside(known)

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """This thread waits for the body of its request; when that is late it has stepped aside."""
        known: _Known = self._mine.known
        with self._lock:
            self._arriving[known] = time.monotonic()
            begin, self._is_watching = not self._is_watching, True
        if begin:
            threading.Thread(target=self._watch, name="late bodies", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._arriving.pop(known, None)

    def _watch(self) -> None:
        """Waiting for each body by a clock of its own would take longer than most bodies do."""
        last = time.monotonic()
        while True:
            time.sleep(self._late_seconds)
            with self._lock:
                now = time.monotonic()
                if self._arriving:
                    last = now
                late = [known for known, since in self._arriving.items() if now - since >= self._late_seconds]
                for known in late:
                    del self._arriving[known]
                    self._put_aside(known)
                if now - last > _WATCH_SECONDS:
                    self._is_watching = False
                    return

    def _put_aside(self, known: _Known) -> None:
        if not known.aside:
            known.aside = True
            self._leave()

    def _come_back(self) -> None:
        known: _Known = self._mine.known
        if known.aside:
            with self._lock:
                known.aside = False
                self._ready += 1

    def _leave(self) -> None:
        """One less; with none left one is called."""
        self._ready -= 1
        if self._ready <= 0 and self._resting:
            self._ready += 1
            # The one that rested last: what it needs is still near.
            self._resting.pop().release()

    def _rest(self) -> None:
        with self._lock:
            if self._ready <= 1:
                return
            self._ready -= 1
            called = threading.Lock()
            called.acquire()
            self._resting.append(called)
        if not called.acquire(timeout=self._rest_seconds):
            with self._lock:
                if called in self._resting:  # else it was called at this very moment, and counted by who called
                    self._resting.remove(called)
                    self._ready += 1

    def _begins(self) -> None:
        with self._lock:
            self._ready += 1

    def _ends(self) -> None:
        with self._lock:
            self._leave()


class _Known:
    """A thread's entry among those that are counted: made in the thread, gone with it."""

    __slots__ = ("_standby", "aside")

    def __init__(self, standby: Standby) -> None:
        self._standby = standby
        self.aside = False
        standby._begins()

    def __del__(self) -> None:
        self._standby._ends()
