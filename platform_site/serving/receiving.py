"""Receives requests: a request takes a thread only when it is complete.

The web server calls `Receiver.take` in one of its threads when it has the head of a request. A request without a body
is submitted at once, to be answered when its turn comes. Otherwise the thread returns, and the server calls again for
each part of the body. So a slow connection holds no thread and at most KNOWN_BYTES of memory.

A body must arrive at a minimum rate (Arrival.deadline), and one of more than KNOWN_BYTES from a known sender
(serving.bodies), so that unknown senders cannot fill the disk. Their requests are answered without the body. Asking for
the sender takes a turn, too.
"""

from __future__ import annotations

import io
import logging
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import IO, Any, Final, Protocol

import orjson

from foundation import errors
from foundation.phrases import Phrase
from foundation.turns import CAME_IN_CHUNKS
from platform_site.serving.exchange import Future, HttpProtocol, Parts, Scope, StartResponse, environ_of, stream

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

Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]
#: (caller, work, protocol): do it when it is the caller's turn, in any thread.
Submit = Callable[[str, Callable[[], None], HttpProtocol], None]


class Policy(Protocol):
    """Who sends a request, and what it may send (platform_site.serving.web)."""

    def prepare(self, environ: dict[str, Any]) -> None:
        """Called once for a request, before anything else."""

    def caller_of(self, environ: dict[str, Any]) -> tuple[str, bool]:
        """A name that all requests of one caller share; whether `identify` would find a better one."""

    def identify(self, environ: dict[str, Any]) -> None:
        """Look who the caller is. Called with the turn."""

    def max_bytes(self, environ: dict[str, Any]) -> int:
        """The longest body that is received."""

    def is_known(self, environ: dict[str, Any]) -> bool:
        """Whether the sender is known, and may send more than KNOWN_BYTES. Raises TooManyRequests for a guesser."""

    def takes_data(self, environ: dict[str, Any]) -> bool:
        """Whether the application itself answers a request whose body was not received."""


class Arrival:
    """A request whose body is being received. `declared` is its Content-Length; None for a body in chunks."""

    __slots__ = (
        "begun", "body", "declared", "ended", "environ", "future", "is_known", "parts", "protocol", "received",
    )  # fmt: skip

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

    submit   does work when its turn comes (platform_site.serving.request_threads)
    """

    def __init__(self, application: Application, policy: Policy, submit: Submit) -> None:
        self._application = application
        self._policy = policy
        self._submit = submit
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
                _refuse(arrival.protocol, errors.RequestTimeout(errors.BODY_TOO_SLOW, BYTES_PER_SECOND))

    def stop(self) -> None:
        """The process is stopping: limit the time of bodies that still arrive."""
        self._stop_at = time.monotonic() + STOP_SECONDS

    def _take(self, protocol: HttpProtocol, scope: Scope) -> None:
        environ = environ_of(scope)
        self._policy.prepare(environ)
        length = environ.get("CONTENT_LENGTH", "")
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not chunked and (not length.isdigit() or int(length) == 0):
            environ["wsgi.input"] = io.BytesIO()
            self._serve(protocol, environ)
            return
        arrival = Arrival(protocol, environ, None if chunked else int(length))
        self._admit(arrival, arrival.declared or 0, self._begin)

    def _begin(self, arrival: Arrival) -> None:
        self._arrivals.add(arrival)
        if arrival.declared is not None and arrival.declared <= AT_ONCE_BYTES:
            self._await(arrival, arrival.protocol(), self._came_whole)
        else:
            arrival.body = tempfile.SpooledTemporaryFile(max_size=KNOWN_BYTES)  # noqa: SIM115  (closed when answered)
            arrival.parts = arrival.protocol.__aiter__()
            self._await(arrival, arrival.parts.__anext__(), self._came)

    def _await(self, arrival: Arrival, future: Future, then: Callable[[Arrival, Future], None]) -> None:
        arrival.future = future
        future.add_done_callback(partial(self._guarded, then, arrival), context=None)
        if arrival.ended.locked():
            arrival.future = None

    def _guarded(self, then: Callable[..., None], arrival: Arrival, *given: Any) -> None:
        try:
            then(arrival, *given)
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
            self._admit(arrival, arrival.received, partial(self._keep, part))
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

    def _keep(self, part: bytes, arrival: Arrival) -> None:
        if arrival.ended.locked():
            return
        assert arrival.body is not None
        assert arrival.parts is not None
        arrival.body.write(part)
        self._await(arrival, arrival.parts.__anext__(), self._came)

    def _admit(self, arrival: Arrival, size: int, go_on: Callable[[Arrival], None]) -> None:
        """Go on if `size` bytes are accepted, as soon as that is known; else answer the request without its body."""
        limit = self._policy.max_bytes(arrival.environ)
        if size > limit:
            self._refuse_body(arrival, size, errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, limit))
        elif size <= KNOWN_BYTES or arrival.is_known:
            go_on(arrival)
        else:
            caller, _ = self._policy.caller_of(arrival.environ)
            self._submit(caller, partial(self._guarded, self._ask, arrival, size, go_on), arrival.protocol)

    def _ask(self, arrival: Arrival, size: int, go_on: Callable[[Arrival], None]) -> None:
        refusal: errors.PlatformError = errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, KNOWN_BYTES)
        try:
            arrival.is_known = self._policy.is_known(arrival.environ)
        except errors.TooManyRequests as limited:
            refusal = limited
        if arrival.is_known:
            go_on(arrival)
        else:
            self._refuse_body(arrival, size, refusal)

    def _refuse_body(self, arrival: Arrival, size: int, refusal: errors.PlatformError) -> None:
        environ = arrival.environ
        if not self._end(arrival):
            return
        if self._policy.takes_data(environ):
            environ.setdefault("CONTENT_LENGTH", str(size))
            environ["wsgi.input"] = _NotReceived()
            self._serve(arrival.protocol, environ)
        else:
            _refuse(arrival.protocol, refusal)

    def _serve(self, protocol: HttpProtocol, environ: dict[str, Any]) -> None:
        """Answer the request when it is the turn of its caller, who may have to be found before."""
        caller, is_new = self._policy.caller_of(environ)
        self._submit(caller, partial(self._find_caller if is_new else self._answer, protocol, environ), protocol)

    def _find_caller(self, protocol: HttpProtocol, environ: dict[str, Any]) -> None:
        try:
            self._policy.identify(environ)
        except Exception:
            # The database is unavailable, for example: the application fails for the same reason and reports it.
            logger.warning("could not tell who sends a request", exc_info=True)
        caller, _ = self._policy.caller_of(environ)
        self._submit(caller, partial(self._answer, protocol, environ), protocol)

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
        start = StartResponse()
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
            # A long poll, the only streamed response (serving.turns). It gets its own thread, so that request threads
            # stay free for requests.
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
    _refuse(arrival.protocol, errors.BadRequest(errors.INVALID_BODY, broken_off))


def _refuse(protocol: HttpProtocol, error: errors.PlatformError) -> None:
    """Answer instead of the application, and close the connection, whose further input is the rest of the body."""
    rendered = errors.render(error, correlation_id=str(uuid.uuid4()), debug=False)
    headers = [("Content-Type", "application/json;charset=utf-8"), ("Cache-Control", "no-store")]
    headers += [("Connection", "close"), *rendered.headers.items()]
    protocol.response_bytes(rendered.status, headers, orjson.dumps(rendered.body))
