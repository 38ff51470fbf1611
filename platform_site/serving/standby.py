"""Of the server's threads one serves, as long as it can; the others stand by.

A process works on one request at a time (platform_site.serving.turns), but the server hands a request to whichever of
its threads is free. Under load that was another thread for each request: it first took the interpreter from the one
that worked, to learn that it had to wait, and then went on with a core that knew nothing of what it needed. Measured
on two cores: pages of 100 under 64 connections, 498 a second so and 773 from one thread.

So who has answered a request stays away from the next one while somebody else is there to take it: free, or in a
request that will go on without waiting for anything outside. Who begins to wait outside calls one back before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

#: Who stands by looks for itself after this time, should nobody have called; with nothing to do the server lets the
#: thread end soon after.
REST_SECONDS: Final = 10.0

#: What the server calls in one of its threads for a request: (the way back to the client, the request).
Serve = Callable[[Any, dict[str, Any]], Any]


class Standby:
    """The threads of one process that requests are given to.

    ready   those that are free, or in a request and not waiting for anything outside: who can take the next request,
            now or when theirs is answered
    """

    def __init__(self, rest_seconds: float = REST_SECONDS) -> None:
        self._rest_seconds = rest_seconds
        self._lock = threading.RLock()  # a thread may end, and be told of, in the middle
        self._ready = 0
        self._resting: list[threading.Lock] = []
        self._mine = threading.local()

    def serving(self, serve: Serve) -> Serve:
        """`serve`, after which the thread may stand by before it returns to the server for another request."""

        def served(protocol: Any, scope: dict[str, Any]) -> Any:
            if getattr(self._mine, "known", None) is None:
                self._mine.known = _Known(self)  # until the server lets the thread end
            # With an exception it returns at once: the server answers for it, and not before.
            answered = serve(protocol, scope)
            self._rest()
            return answered

        return served

    def leave(self) -> None:
        """This thread is about to wait for something outside: somebody else must be there for the next request."""
        with self._lock:
            self._ready -= 1
            self._call_if_nobody()

    def come_back(self) -> None:
        """It waits no longer."""
        with self._lock:
            self._ready += 1

    def call_another(self) -> None:
        """Somebody beside this thread should be there: it works for long, and lets others go first now and then."""
        with self._lock:
            if self._ready <= 1 and self._resting:
                self._call()

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

    def _call_if_nobody(self) -> None:
        if self._ready <= 0 and self._resting:
            self._call()

    def _call(self) -> None:
        self._ready += 1
        # The one that rested last: what it needs is still near.
        self._resting.pop().release()


class _Known:
    """A thread's entry among those that are ready: made in the thread, gone with it."""

    def __init__(self, standby: Standby) -> None:
        self._standby = standby
        standby.come_back()

    def __del__(self) -> None:
        self._standby.leave()
