"""Lets one of the server's threads serve requests as long as possible; the other threads rest.

A process works on one request at a time (platform_site.serving.turns), but the server gives a request to any free
thread. Under load each request went to another thread: it took the interpreter lock only to find that it had to wait,
and later continued with cold CPU caches. Measured on two cores, pages of 100 under 64 connections: 498 a second so, and
773 from one thread.

So a thread that has answered a request rests while another thread is ready to take the next one: a free thread, or one
in a request that will not wait for anything outside. A thread that waits outside, or lets other requests go first,
steps aside: it wakes a resting thread and is not ready again before its request is answered. Otherwise two threads that
wait for each other by turns would both count as ready.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from platform_site.serving.exchange import Serve

#: A resting thread returns to the server after this time without a wake-up; an idle server ends the thread soon after.
REST_SECONDS: Final = 10.0


class Standby:
    """The request threads of one process.

    ready   number of threads that are free, or in a request and not aside: they can take the next request, now or after
            their own
    """

    def __init__(self, rest_seconds: float = REST_SECONDS) -> None:
        self._rest_seconds = rest_seconds
        self._lock = threading.RLock()  # reentrant: _Known.__del__ may run while it is held
        self._ready = 0
        self._resting: list[threading.Lock] = []
        self._mine = threading.local()

    def serving(self, serve: Serve) -> Serve:
        """Wrap `serve`: after a request the thread may rest before it returns to the server."""

        def served(protocol: Any, environ: dict[str, Any]) -> Any:
            if getattr(self._mine, "known", None) is None:
                self._mine.known = _Known(self)  # lives as long as the thread
            try:
                answered = serve(protocol, environ)
            finally:
                self._come_back()
            # After an exception the thread returns at once, because only then the server answers.
            self._rest()
            return answered

        return served

    def step_aside(self) -> None:
        """Do not count this thread as ready until its request is answered. Other threads are never counted."""
        known: _Known | None = getattr(self._mine, "known", None)
        if known is not None and not known.aside:
            with self._lock:
                self._put_aside(known)

    def stop(self) -> None:
        """The process is stopping: wake all resting threads, since the server waits for its threads."""
        with self._lock:
            self._rest_seconds = 0.0
            while self._resting:
                self._ready += 1
                self._resting.pop().release()

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
        """Count one ready thread less; wake a resting thread if none is left."""
        self._ready -= 1
        if self._ready <= 0 and self._resting:
            self._ready += 1
            # The thread that rested last has the warmest caches.
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
                if called in self._resting:  # else _leave or stop has just woken and counted it
                    self._resting.remove(called)
                    self._ready += 1

    def _begins(self) -> None:
        with self._lock:
            self._ready += 1

    def _ends(self) -> None:
        with self._lock:
            self._leave()


class _Known:
    """Counts a thread as ready: created in the thread, deleted when the thread ends."""

    __slots__ = ("_standby", "aside")

    def __init__(self, standby: Standby) -> None:
        self._standby = standby
        self.aside = False
        standby._begins()

    def __del__(self) -> None:
        self._standby._ends()
