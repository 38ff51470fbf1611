"""Receives requests: a request takes a thread only when it is complete.

The web server calls `Receiver.take` in one of its threads when it has the head of a request. That call answers a
request without a body. Otherwise the thread returns, and the server calls again for each part of the body. So a slow
connection holds no thread and at most KNOWN_BYTES of memory.

A body must arrive at a minimum rate (Arrival.deadline), and one of more than KNOWN_BYTES from a known sender
(serving.bodies), so that unknown senders cannot fill the disk. Their requests are answered without the body.
"""

from __future__ import annotations

import io
import logging
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import IO, Any, Final, Protocol

import orjson
from django.core.handlers.wsgi import WSGIRequest

from foundation import errors
from foundation.phrases import Phrase
from foundation.turns import CAME_IN_CHUNKS
from identity.languages import speaking
from platform_site.serving.exchange import (
    Application,
    Future,
    HttpProtocol,
    Parts,
    ResponseHead,
    Scope,
    Serve,
    environ_of,
    stream,
)

logger = logging.getLogger("platform.serving")

#: The server receives a body of at most this declared length as a whole, in one call.
AT_ONCE_BYTES: Final = 16 * 1024
#: A body up to this size is stored in memory, and accepted from unknown senders.
KNOWN_BYTES: Final = 64 * 1024
#: Time for every body, and the bytes that extend it by a second (Apache's mod_reqtimeout has 20 and 500).
BODY_SECONDS: Final = 20.0
BYTES_PER_SECOND: Final = 500
#: When the process stops, bodies that still arrive have this time.
STOP_SECONDS: Final = 3.0


class Policy(Protocol):
    """What a request may send (platform_site.serving.bodies)."""

    def max_bytes(self, environ: dict[str, Any]) -> int:
        """The longest body that is received."""

    def is_known(self, environ: dict[str, Any]) -> bool:
        """Whether the sender is known, and may send more than KNOWN_BYTES. Raises TooManyRequests for a guesser."""

    def takes_data(self, environ: dict[str, Any]) -> bool:
        """Whether the application itself answers a request whose body was not received."""


class Arrival:
    """A request whose body is being received. `declared` is its Content-Length; None for a body in chunks."""

    __slots__ = ("begun", "body", "declared", "ended", "environ", "future", "is_known", "parts", "protocol", "received")

    def __init__(self, protocol: HttpProtocol, environ: dict[str, Any], declared: int | None) -> None:
        self.protocol = protocol
        self.environ = environ
        self.declared = declared
        self.begun = time.monotonic()
        self.received = 0
        self.is_known = False
        self.ended = threading.Lock()  # acquired once: by the last part or at the deadline
        self.body: IO[bytes] | None = None
        self.parts: Parts | None = None
        self.future: Future | None = None

    @property
    def deadline(self) -> float:
        """Latest time of the next part, on the monotonic clock."""
        return self.begun + BODY_SECONDS + self.received / BYTES_PER_SECOND


class Receiver:
    """The requests of one web process.

    serving   wraps the function that answers requests (platform_site.serving.standby)
    """

    def __init__(self, application: Application, policy: Policy, serving: Callable[[Serve], Serve]) -> None:
        self._application = application
        self._policy = policy
        self._serve = serving(self._answer)
        self._arrivals: set[Arrival] = set()
        self._stop_at: float | None = None

    def take(self, watcher: Any) -> None:
        """Take a request whose head has been received. The server calls this; `watcher` has scope and protocol."""
        protocol, scope = watcher.proto, watcher.scope
        try:
            self._take(protocol, scope)
        except Exception:
            # An exception in the server's own code would stop it.
            logger.exception("could not take a request")
            protocol.response_bytes(500, [], b"")

    def call_soon_threadsafe(self, callback: Callable[..., None], *arguments: Any, context: Any = None) -> None:
        """The server calls this in one of its threads when a future is done: the receiver is its event loop."""
        callback(*arguments)

    #: The same, for a future that was done before a callback was added.
    call_soon = call_soon_threadsafe

    def watch(self) -> None:
        """Refuse bodies that arrive too slowly; a loop for its own thread."""
        while True:
            time.sleep(1.0)
            try:
                self.check(time.monotonic())
            except Exception:
                # Without this thread slow bodies would have no deadline.
                logger.exception("could not check the bodies that arrive")

    def check(self, now: float) -> None:
        """Refuse the bodies whose deadline is before `now`."""
        for arrival in list(self._arrivals):
            late = now > arrival.deadline or (self._stop_at is not None and now > self._stop_at)
            future = arrival.future
            if late and self._end(arrival):
                if future is not None:
                    future.cancel()
                _refuse(arrival, errors.RequestTimeout(errors.BODY_TOO_SLOW, BYTES_PER_SECOND))

    def stop(self) -> None:
        """The process is stopping: limit the time of bodies that still arrive."""
        self._stop_at = time.monotonic() + STOP_SECONDS

    def _take(self, protocol: HttpProtocol, scope: Scope) -> None:
        environ = environ_of(scope)
        length = environ.get("CONTENT_LENGTH", "")
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not chunked and (not length.isdigit() or int(length) == 0):
            environ["wsgi.input"] = io.BytesIO()
            self._serve(protocol, environ)
            return
        arrival = Arrival(protocol, environ, None if chunked else int(length))
        if not self._may_send(arrival, arrival.declared or 0):
            return
        self._arrivals.add(arrival)
        if arrival.declared is not None and arrival.declared <= AT_ONCE_BYTES:
            self._await(arrival, protocol(), self._came_whole)
        else:
            arrival.body = tempfile.SpooledTemporaryFile(max_size=KNOWN_BYTES)  # noqa: SIM115  (closed when answered)
            arrival.parts = protocol.__aiter__()
            self._await(arrival, arrival.parts.__anext__(), self._came)

    def _await(self, arrival: Arrival, future: Future, then: Callable[[Arrival, Future], None]) -> None:
        arrival.future = future
        future.add_done_callback(partial(self._guarded, then, arrival), context=None)
        if arrival.ended.locked():
            arrival.future = None

    def _guarded(self, then: Callable[[Arrival, Future], None], arrival: Arrival, future: Future) -> None:
        try:
            then(arrival, future)
        except Exception:
            # The server ignores a callback's exception, and the client would get no response.
            logger.exception("could not receive a body")
            if self._end(arrival):
                arrival.protocol.response_bytes(500, [], b"")

    def _came_whole(self, arrival: Arrival, future: Future) -> None:
        if not self._end(arrival):
            return
        try:
            content = future.result()
        except Exception:
            _refuse_part(arrival)
            return
        arrival.environ["wsgi.input"] = io.BytesIO(content)
        self._serve(arrival.protocol, arrival.environ)

    def _came(self, arrival: Arrival, future: Future) -> None:
        if arrival.ended.locked():
            return
        try:
            part = future.result()
        except Exception:
            part = b""
        assert arrival.body is not None
        assert arrival.parts is not None
        if part:
            arrival.received += len(part)
            if self._may_send(arrival, arrival.received):
                arrival.body.write(part)
                self._await(arrival, arrival.parts.__anext__(), self._came)
            return
        if not self._end(arrival):
            return
        if arrival.declared is not None and arrival.received < arrival.declared:
            _refuse_part(arrival)
            return
        if arrival.declared is None:
            # Django reads a body by its length (RFC 9112, 7.1).
            arrival.environ["CONTENT_LENGTH"] = str(arrival.received)
            arrival.environ.pop("HTTP_TRANSFER_ENCODING", None)
            arrival.environ[CAME_IN_CHUNKS] = True
        arrival.body.seek(0)
        arrival.environ["wsgi.input"] = arrival.body
        self._serve(arrival.protocol, arrival.environ)

    def _may_send(self, arrival: Arrival, size: int) -> bool:
        """Whether `size` bytes are accepted; else this method answers the request without its body."""
        environ = arrival.environ
        limit = self._policy.max_bytes(environ)
        limited: errors.TooManyRequests | None = None
        if size <= limit:
            if size <= KNOWN_BYTES or arrival.is_known:
                return True
            try:
                arrival.is_known = self._policy.is_known(environ)
            except errors.TooManyRequests as refused:
                limited = refused
            if arrival.is_known:
                return True
            limit = KNOWN_BYTES
        if not self._end(arrival):
            return False
        if self._policy.takes_data(environ):
            environ.setdefault("CONTENT_LENGTH", str(size))
            environ["wsgi.input"] = _NotReceived()
            self._serve(arrival.protocol, environ)
        else:
            _refuse(arrival, limited or errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, limit))
        return False

    def _end(self, arrival: Arrival) -> bool:
        """End the arrival; False if it has ended before."""
        self._arrivals.discard(arrival)
        if not arrival.ended.acquire(blocking=False):
            return False
        # Break the reference cycle future → callback → arrival: else the server keeps the connection, and a stopping
        # process waits for it.
        arrival.future = None
        return True

    def _answer(self, protocol: HttpProtocol, environ: dict[str, Any]) -> None:
        start = ResponseHead()
        try:
            answer = self._application(environ, start)
        except Exception:
            logger.exception("unhandled exception in %s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
            protocol.response_bytes(500, [], b"")
            return
        finally:
            environ["wsgi.input"].close()
        if isinstance(environ["wsgi.input"], _NotReceived):
            # The rest of the connection's input is the body.
            start.headers.append(("Connection", "close"))
        if isinstance(answer, list):
            protocol.response_bytes(start.status, start.headers, b"".join(answer))
        else:
            # A long poll, the only streamed response (serving.turns). It gets its own thread, so that the server's
            # threads stay free for requests.
            threading.Thread(target=stream, args=(protocol, start, answer), name="long poll", daemon=True).start()


class _NotReceived(io.RawIOBase):
    """Input of a request whose body was not received. Reading it fails, since an empty body could be valid."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        raise OSError("the body was not received")

    def readline(self, size: int | None = -1) -> bytes:
        raise OSError("the body was not received")


def _refuse_part(arrival: Arrival) -> None:
    """400 for a message that ended before its Content-Length (RFC 9112, 8): a partial body must not be processed."""
    broken_off = Phrase("it ended before the {0} bytes that Content-Length declares had arrived", arrival.declared or 0)
    _refuse(arrival, errors.BadRequest(errors.INVALID_BODY, broken_off))


def _refuse(arrival: Arrival, error: errors.PlatformError) -> None:
    """Answer instead of the application, and close the connection, whose further input is the rest of the body."""
    with speaking(WSGIRequest({**arrival.environ, "wsgi.input": io.BytesIO()})) as language:
        rendered = errors.render(error, correlation_id=str(uuid.uuid4()), debug=False)
    headers = [("Content-Type", "application/json;charset=utf-8"), ("Content-Language", language)]
    headers += [("Cache-Control", "no-store"), ("Connection", "close"), *rendered.headers.items()]
    arrival.protocol.response_bytes(rendered.status, headers, orjson.dumps(rendered.body))
