"""Clients that wait for events, and the one thread of a process that serves all of them.

A waiting client occupies no thread, execution slot, database connection or lock: it has a pushed response
(foundation.streamed_responses), which the thread of its Listeners fills. Whoever answers a request with one calls
`check_room` first.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, ClassVar, Generic, TypeVar

from django.db import connection

from foundation import errors
from foundation.fair_queue import has_free_place
from foundation.streamed_responses import Outlet

logger = logging.getLogger("platform.events")

#: White space is allowed before a JSON document (RFC 8259, 2).
WHITE_SPACE = b" "
#: Interval of bytes to a silent client: proxies close a connection without any after a minute, mostly.
STILL_HERE_SECONDS = 15.0
#: When a client that finds no place may come again.
RETRY_SECONDS = 5


class Listener:
    """A waiting client; a foundation.streamed_responses.Push.

    listeners   those of the process, which it belongs to while its response is open
    caller      guid of the user, "" for none
    seconds     after which the response ends
    has_begun   a part has been sent
    """

    def __init__(self, listeners: Listeners[Any], caller: str, seconds: float) -> None:
        self.caller = caller
        self._listeners = listeners
        self._sent_at = time.monotonic()
        self._ends_at = self._sent_at + seconds
        self._outlet: Outlet | None = None
        self.has_begun = False
        self._closed = threading.Event()
        self._ending = threading.Lock()
        self._is_ending = False

    def opening(self) -> bytes:
        """The first part, sent at once; without one the status can still become that of an error."""
        return b""

    def still_here(self) -> bytes:
        """The part that tells a silent client that the connection lives."""
        return WHITE_SPACE

    def at_end(self) -> bytes:
        """The part at the end of the time."""
        raise NotImplementedError

    def start(self, outlet: Outlet) -> None:
        """Begin to listen; not if the client has gone already."""
        if self._closed.is_set():
            outlet.end()
            return
        self._outlet = outlet
        if opening := self.opening():
            self.send(opening)
        self._listeners.add(self)
        if self._closed.is_set():  # by another thread meanwhile, whose `close` may have come before each step above
            self.close()

    def close(self) -> None:
        """Listen no longer."""
        self._closed.set()
        self._listeners.remove(self)
        outlet, self._outlet = self._outlet, None
        if outlet is not None:
            outlet.end()

    @property
    def is_open(self) -> bool:
        """Whether the response has begun and not ended."""
        return self._outlet is not None

    def may_send(self) -> bool:
        """Whether the client reads what it is sent."""
        return self._outlet is not None and self._outlet.has_room()

    def send(self, part: bytes) -> None:
        """Send a part, if the response is open."""
        self._sent_at = time.monotonic()
        self.has_begun = True
        if self._outlet is not None:
            self._outlet.send(part)

    def end(self, part: bytes) -> None:
        """Send the last part, once: the process may stop while the thread of the listeners ends the response."""
        with self._ending:
            if self._is_ending:
                return
            self._is_ending = True
        self.send(part)
        self.close()

    def pass_time(self, *, is_stopping: bool) -> None:
        """Tell a silent client that the connection lives, and end the response at its time."""
        now = time.monotonic()
        if is_stopping or now >= self._ends_at:
            self.end(self.at_end())
        elif now - self._sent_at >= STILL_HERE_SECONDS:
            self.send(self.still_here())


L = TypeVar("L", bound=Listener)


class Listeners(Generic[L]):
    """The listeners of a process. Their thread ends with the last of them.

    look_seconds   interval in which the thread looks for events
    places         maximum listeners of a process; all of an instance may be connected to the same one
    reserved       the last places are for callers with fewer listeners than this, so that no caller takes all
    """

    look_seconds: ClassVar[float]
    places: int
    reserved: int

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[L, None] = {}
        self._is_looking = False
        self._is_stopping = False
        self._look_now = threading.Event()

    def serve(self, listeners: list[L]) -> bool:
        """Give listeners what they wait for, with the database; returns whether there is more to give at once."""
        raise NotImplementedError

    def full(self) -> errors.Unavailable:
        """The error if there is no place."""
        raise NotImplementedError

    def check_room(self, caller: str) -> None:
        """Raise Unavailable if the process has no place for another listener of the caller."""
        taken_by = [each.caller for each in self.all()]
        if not has_free_place(taken_by, caller, places=self.places, reserved=self.reserved):
            raise self.full()

    def all(self) -> list[L]:
        """Those whose responses are open."""
        with self._lock:
            return list(self._listeners)

    def add(self, listener: L) -> None:
        """Serve the listener from now on."""
        with self._lock:
            self._listeners[listener] = None
            if not self._is_looking:
                self._is_looking = True
                threading.Thread(target=self._look, name=type(self).__name__, daemon=True).start()

    def remove(self, listener: L) -> None:
        """Serve it no longer, if it is a listener."""
        with self._lock:
            self._listeners.pop(listener, None)

    def wake(self) -> None:
        """Look for events now: this process has made one."""
        self._look_now.set()

    def stop(self) -> None:
        """End all responses, because the process stops; clients go on elsewhere."""
        self._is_stopping = True
        self._look_now.set()
        for listener in self.all():
            listener.pass_time(is_stopping=True)

    def _look(self) -> None:
        while True:
            with self._lock:
                listeners = list(self._listeners)
                self._is_looking = bool(listeners)
            if not listeners:
                break
            self._look_now.clear()
            try:
                is_behind = self.serve(listeners)
            except Exception:
                # Listeners keep their positions; the next look may succeed.
                logger.warning("could not look for events", exc_info=True)
                connection.close()
                is_behind = False
            for each in listeners:
                each.pass_time(is_stopping=self._is_stopping)
            if not is_behind and not self._is_stopping:
                self._look_now.wait(self.look_seconds)
        connection.close()
