"""Clients that wait for events, and the one thread of a process that serves all of them.

A waiting client occupies no thread, execution slot, database connection or lock: it has a pushed response
(foundation.streamed_responses), which the thread of its Listeners fills. A view calls `check_capacity` first.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, ClassVar, Generic, TypeVar

from django.db import connection

from foundation import errors
from foundation.fair_queue import has_capacity
from foundation.streamed_responses import ResponseWriter

logger = logging.getLogger("platform.events")

#: White space is allowed before a JSON document (RFC 8259, 2).
WHITE_SPACE = b" "
#: Maximum time without a byte to the client: most proxies close an idle connection after a minute.
KEEP_ALIVE_SECONDS = 15.0
#: Retry-After of a refused client.
RETRY_SECONDS = 5


class Listener:
    """A waiting client; a foundation.streamed_responses.Push.

    listeners   the listeners of the process, to which it belongs while its response is open
    caller      guid of the user, "" for none
    seconds     maximum duration of the response
    has_begun   whether a part has been sent
    """

    def __init__(self, listeners: Listeners[Any], caller: str, seconds: float) -> None:
        self.caller = caller
        self._listeners = listeners
        self._sent_at = time.monotonic()
        self._ends_at = self._sent_at + seconds
        self._writer: ResponseWriter | None = None
        self.has_begun = False
        self._closed = threading.Event()
        self._ending = threading.Lock()
        self._is_ending = False

    def first_part(self) -> bytes:
        """The first part, sent at once. If it is empty, the status can still become that of an error."""
        return b""

    def keep_alive_part(self) -> bytes:
        """The part that is sent after KEEP_ALIVE_SECONDS without another one."""
        return WHITE_SPACE

    def last_part(self) -> bytes:
        """The part that ends the response at its maximum duration."""
        raise NotImplementedError

    def start(self, writer: ResponseWriter) -> None:
        """Begin to listen, unless the client has disconnected already."""
        if self._closed.is_set():
            writer.end()
            return
        self._writer = writer
        if first_part := self.first_part():
            self.send(first_part)
        self._listeners.add(self)
        if self._closed.is_set():  # by another thread, whose `close` may have run before any step above
            self.close()

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        self._listeners.remove(self)
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.end()

    @property
    def is_open(self) -> bool:
        """Whether the response has begun and not ended."""
        return self._writer is not None

    def may_send(self) -> bool:
        """Whether the client reads what is sent."""
        return self._writer is not None and self._writer.can_write()

    def send(self, part: bytes) -> None:
        """Send a part, if the response is open."""
        self._sent_at = time.monotonic()
        self.has_begun = True
        if self._writer is not None:
            self._writer.send(part)

    def end(self, part: bytes) -> None:
        """Send the last part, once: the process may stop while the thread of the listeners ends the response."""
        with self._ending:
            if self._is_ending:
                return
            self._is_ending = True
        self.send(part)
        self.close()

    def keep_alive_or_end(self, *, is_stopping: bool) -> None:
        """End the response at its maximum duration; else keep an idle connection alive."""
        now = time.monotonic()
        if is_stopping or now >= self._ends_at:
            self.end(self.last_part())
        elif now - self._sent_at >= KEEP_ALIVE_SECONDS:
            self.send(self.keep_alive_part())


L = TypeVar("L", bound=Listener)


class Listeners(Generic[L]):
    """The listeners of a process, and their thread, which ends with the last of them.

    poll_seconds   interval in which the thread polls for events
    max_listeners  maximum of a process; all clients of an instance may be connected to the same process
    reserved       this many of them are reserved for callers with fewer listeners than this
    """

    poll_seconds: ClassVar[float]
    max_listeners: int
    reserved: int

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[L, None] = {}
        self._is_polling = False
        self._is_stopping = False
        self._poll_now = threading.Event()

    def serve(self, listeners: list[L]) -> bool:
        """Send listeners the events that they wait for; returns whether more can be sent at once. Uses the database."""
        raise NotImplementedError

    def capacity_error(self) -> errors.Unavailable:
        """The error if the maximum is reached."""
        raise NotImplementedError

    def check_capacity(self, caller: str) -> None:
        """Raise Unavailable if the process may not have another listener of the caller."""
        holders = [each.caller for each in self.all()]
        if not has_capacity(holders, caller, limit=self.max_listeners, reserved=self.reserved):
            raise self.capacity_error()

    def all(self) -> list[L]:
        """The listeners whose responses are open."""
        with self._lock:
            return list(self._listeners)

    def add(self, listener: L) -> None:
        """Add a listener; starts the thread if it does not run."""
        with self._lock:
            self._listeners[listener] = None
            if not self._is_polling:
                self._is_polling = True
                threading.Thread(target=self._poll, name=type(self).__name__, daemon=True).start()

    def remove(self, listener: L) -> None:
        """Remove a listener, if it is one."""
        with self._lock:
            self._listeners.pop(listener, None)

    def wake(self) -> None:
        """Poll now, since this process has raised an event."""
        self._poll_now.set()

    def stop(self) -> None:
        """End all responses, because the process stops; the clients connect to another one."""
        self._is_stopping = True
        self._poll_now.set()
        for listener in self.all():
            listener.keep_alive_or_end(is_stopping=True)

    def _poll(self) -> None:
        while True:
            with self._lock:
                listeners = list(self._listeners)
                self._is_polling = bool(listeners)
            if not listeners:
                break
            self._poll_now.clear()
            try:
                is_behind = self.serve(listeners)
            except Exception:
                # Listeners keep their positions; the next poll may succeed.
                logger.warning("could not poll for events", exc_info=True)
                connection.close()
                is_behind = False
            for each in listeners:
                each.keep_alive_or_end(is_stopping=self._is_stopping)
            if not is_behind and not self._is_stopping:
                self._poll_now.wait(self.poll_seconds)
        connection.close()
