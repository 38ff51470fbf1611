"""Receives requests, and submits them to the scheduler when they are complete.

The web server calls `Receiver.take` in its thread when it has the head of a request, and a callback for each part of
the body. So a slow connection holds no thread and at most KNOWN_BYTES of memory.

A body must arrive at a minimum rate (IncomingRequest.deadline), and a body of more than KNOWN_BYTES must come from a
known sender (serving.callers), so that unknown senders cannot fill the disk. Others get a response without the body
being received.
"""

from __future__ import annotations

import io
import logging
import os
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import IO, Any, Final, Protocol

import orjson
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse

from foundation import errors
from foundation.error_summaries import summary_of
from foundation.messages import TranslatableMessage as Message
from foundation.streamed_responses import PipedResponse, PushedResponse
from foundation.wsgi import HAS_CHUNKED_BODY, ON_DISCONNECT
from identity.anonymous_forms import MAX_BYTES
from identity.languages import activate_request_language
from platform_site.logging import request_logged_as
from platform_site.middleware import assign_request_id
from platform_site.recorded_requests import record_request
from platform_site.serving.connection_balance import ConnectionBalance
from platform_site.serving.exchange import (
    HEADER_BYTES,
    LONG_HEADER,
    Application,
    FileBody,
    Future,
    HttpProtocol,
    Parts,
    ResponseHead,
    Scope,
    environ_of,
    on_disconnect,
)
from platform_site.serving.pipes import Pipes
from platform_site.serving.pushes import ServerResponseWriter
from platform_site.serving.scheduler import MAX_QUEUED, Request, Scheduler

logger = logging.getLogger("platform.serving")

#: Maximum declared length of a body that the server receives as a whole, in one call.
AT_ONCE_BYTES: Final = 16 * 1024
#: Maximum size of a body that is stored in memory, and of one from an unknown sender.
KNOWN_BYTES: Final = 64 * 1024
#: Time for every body, and the bytes that extend it by a second (Apache's mod_reqtimeout has 20 and 500).
BODY_SECONDS: Final = 20.0
BYTES_PER_SECOND: Final = 500
#: Time after which the file of a response is deleted; the server, which has opened it, continues to read.
FILE_SECONDS: Final = 10.0
#: Interval of the checks of arriving bodies and connections.
WATCH_SECONDS: Final = 0.25
#: Key of the environ: address and port of the client, which may be a proxy.
CONNECTION: Final = "platform.connection"
#: Time for unfinished bodies to arrive when the process stops.
STOP_SECONDS: Final = 3.0


class Policy(Protocol):
    """Limits and caller of a request (platform_site.serving.web)."""

    def prepare(self, environ: dict[str, Any]) -> None:
        """Set the client's address."""

    def caller(self, environ: dict[str, Any]) -> tuple[str, bool]:
        """The name of the caller, and whether `find_caller` may return a better one."""

    def find_caller(self, environ: dict[str, Any]) -> str:
        """The name of the caller, from the database."""

    def max_bytes(self, environ: dict[str, Any]) -> int:
        """The maximum size of the body."""

    def is_known(self, environ: dict[str, Any]) -> bool:
        """Whether the sender is known, and may send more than KNOWN_BYTES. Raises TooManyRequests for guesses."""

    def takes_data(self, environ: dict[str, Any]) -> bool:
        """Whether the application itself responds to a request whose body was not received."""


class IncomingRequest:
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

    scheduler   executes the requests when their turn comes (platform_site.serving.scheduler)
    balance     determines which connections of this process to close
    """

    def __init__(
        self, application: Application, policy: Policy, scheduler: Scheduler, balance: ConnectionBalance
    ) -> None:
        self._application = application
        self._policy = policy
        self._scheduler = scheduler
        self._balance = balance
        self._incoming: set[IncomingRequest] = set()
        self._files: deque[tuple[float, IO[bytes]]] = deque()  # of responses: time, file
        self._pipes = Pipes()
        self._stop_at: float | None = None

    def take(self, watcher: Any) -> None:
        """Receive a request after its head. The server calls this; `watcher` has scope and protocol."""
        protocol, scope = watcher.proto, watcher.scope
        try:
            self._receive(protocol, scope)
        except Exception:
            # An exception would stop the server.
            logger.exception("could not take a request")
            protocol.response_bytes(500, [], b"")

    def call_soon_threadsafe(self, callback: Callable[..., None], *arguments: Any, context: Any = None) -> None:
        """Called by the server in one of its threads when a future is done: the receiver is its event loop."""
        callback(*arguments)

    #: The same for a future that was done before the callback was added.
    call_soon = call_soon_threadsafe

    def watch(self) -> None:
        """Refuse bodies that arrive too slowly, and balance connections; an endless loop for a separate thread."""
        while True:
            time.sleep(WATCH_SECONDS)
            try:
                self.check(time.monotonic())
                self._balance.compare(self._scheduler.count_requests())
            except Exception:
                # If this thread ended, deadlines of bodies would not be enforced.
                logger.exception("could not check the bodies that arrive")

    def check(self, now: float) -> None:
        """Refuse the bodies whose deadline is before `now`; remove old files of responses."""
        for incoming in list(self._incoming):
            late = now > incoming.deadline or (self._stop_at is not None and now > self._stop_at)
            future = incoming.future
            if late and self._end(incoming):
                if future is not None:
                    future.cancel()
                too_slow = errors.RequestTimeout(errors.BODY_TOO_SLOW, BYTES_PER_SECOND)
                _refuse(incoming.protocol, incoming.environ, too_slow)
        while self._files and now > self._files[0][0] + FILE_SECONDS:
            self._files.popleft()[1].close()

    def stop(self) -> None:
        """When the process stops: limit the time of unfinished bodies, and abort piped responses."""
        self._stop_at = time.monotonic() + STOP_SECONDS
        self._pipes.stop()

    def _receive(self, protocol: HttpProtocol, scope: Scope) -> None:
        environ = environ_of(scope)
        environ[CONNECTION] = scope.client
        self._balance.use(scope.client)
        self._policy.prepare(environ)
        if LONG_HEADER in environ:
            _refuse(
                protocol, environ, errors.HeaderTooLarge(errors.HEADER_TOO_LARGE, environ[LONG_HEADER], HEADER_BYTES)
            )
            return
        length = environ.get("CONTENT_LENGTH", "")
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not chunked and (not length.isdigit() or int(length) == 0):
            environ["wsgi.input"] = io.BytesIO()
            self._serve(protocol, environ)
            return
        incoming = IncomingRequest(protocol, environ, None if chunked else int(length))
        self._incoming.add(incoming)
        self._admit(incoming, incoming.declared or 0, self._begin)

    def _begin(self, incoming: IncomingRequest) -> None:
        if incoming.declared is not None and incoming.declared <= AT_ONCE_BYTES:
            self._await(incoming, incoming.protocol(), self._whole_body_received)
        else:
            incoming.body = tempfile.SpooledTemporaryFile(max_size=KNOWN_BYTES)  # noqa: SIM115  (closed when answered)
            incoming.parts = incoming.protocol.__aiter__()
            self._await(incoming, incoming.parts.__anext__(), self._part_received)

    def _await(
        self, incoming: IncomingRequest, future: Future, then: Callable[[IncomingRequest, Future], None]
    ) -> None:
        incoming.future = future
        future.add_done_callback(partial(self._guarded, then, incoming), context=None)
        if incoming.ended.locked():
            incoming.future = None

    def _guarded(self, then: Callable[..., None], incoming: IncomingRequest, *arguments: Any) -> None:
        try:
            then(incoming, *arguments)
        except Exception:
            # The server ignores exceptions of callbacks, and the client would get no response.
            logger.exception("could not receive a body")
            if self._end(incoming):
                incoming.protocol.response_bytes(500, [], b"")

    def _whole_body_received(self, incoming: IncomingRequest, future: Future) -> None:
        if not self._end(incoming):
            return
        try:
            content = future.result()
        except Exception:
            _refuse_part(incoming)
            return
        incoming.environ["wsgi.input"] = io.BytesIO(content)
        self._serve(incoming.protocol, incoming.environ)

    def _part_received(self, incoming: IncomingRequest, future: Future) -> None:
        if incoming.ended.locked():
            return
        try:
            part = future.result()
        except Exception:
            part = b""
        assert incoming.body is not None
        assert incoming.parts is not None
        if part:
            incoming.received += len(part)
            self._admit(incoming, incoming.received, partial(self._store_part, part))
            return
        if not self._end(incoming):
            return
        if incoming.declared is not None and incoming.received < incoming.declared:
            _refuse_part(incoming)
            return
        if incoming.declared is None:
            # Django reads a body by its length (RFC 9112, 7.1).
            incoming.environ["CONTENT_LENGTH"] = str(incoming.received)
            incoming.environ.pop("HTTP_TRANSFER_ENCODING", None)
            incoming.environ[HAS_CHUNKED_BODY] = True
        incoming.body.seek(0)
        incoming.environ["wsgi.input"] = incoming.body
        self._serve(incoming.protocol, incoming.environ)

    def _store_part(self, part: bytes, incoming: IncomingRequest) -> None:
        assert incoming.body is not None
        assert incoming.parts is not None
        incoming.body.write(part)
        self._await(incoming, incoming.parts.__anext__(), self._part_received)

    def _admit(self, incoming: IncomingRequest, size: int, then: Callable[[IncomingRequest], None]) -> None:
        """Call `then` once `size` bytes are accepted; else respond without receiving the body."""
        limit = self._policy.max_bytes(incoming.environ)
        if size > limit:
            self._refuse_body(incoming, size, errors.PayloadTooLarge(errors.PAYLOAD_TOO_LARGE, limit))
        elif size <= KNOWN_BYTES or incoming.is_known:
            then(incoming)
        else:
            check = partial(self._guarded, self._check_sender, incoming, size, then)
            if not self._queue(incoming.protocol, incoming.environ, check):
                self._end(incoming)

    def _check_sender(self, incoming: IncomingRequest, size: int, then: Callable[[IncomingRequest], None]) -> None:
        refusal: errors.PlatformError = errors.PayloadTooLarge(errors.TOO_LARGE_WITHOUT_LOGIN, MAX_BYTES)
        try:
            incoming.is_known = self._policy.is_known(incoming.environ)
        except errors.TooManyRequests as limited:
            refusal = limited
        if not incoming.is_known:
            self._refuse_body(incoming, size, refusal)
        elif not incoming.ended.locked():
            then(incoming)

    def _refuse_body(self, incoming: IncomingRequest, size: int, refusal: errors.PlatformError) -> None:
        if not self._end(incoming):
            return
        environ = incoming.environ
        if self._policy.takes_data(environ):
            environ.setdefault("CONTENT_LENGTH", str(size))
            environ["wsgi.input"] = _NotReceived()
            self._serve(incoming.protocol, environ)
        else:
            _refuse(incoming.protocol, environ, refusal)

    def _serve(self, protocol: HttpProtocol, environ: dict[str, Any]) -> None:
        """Queue a complete request."""
        self._queue(protocol, environ, partial(self._respond, protocol, environ))

    def _queue(self, protocol: HttpProtocol, environ: dict[str, Any], work: Callable[[], None]) -> bool:
        """Queue work of a request; False if the queue of its caller is full and the request was refused."""
        caller, is_unknown = self._policy.caller(environ)
        resolve = partial(self._policy.find_caller, environ) if is_unknown else None
        if self._scheduler.submit(Request(caller, work, partial(on_disconnect, protocol), resolve)):
            return True
        refusal = errors.TooManyRequests(MAX_QUEUED, 1, retry_after_seconds=1, code=errors.QUEUE_FULL)
        _refuse(protocol, environ, refusal)
        return False

    def _end(self, incoming: IncomingRequest) -> bool:
        """End receiving the request; False if that has ended before."""
        self._incoming.discard(incoming)
        if not incoming.ended.acquire(blocking=False):
            return False
        # Break the reference cycle future → callback → request, which would keep the connection open and delay the stop
        # of the process.
        incoming.future = None
        return True

    def _respond(self, protocol: HttpProtocol, environ: dict[str, Any]) -> None:
        start = ResponseHead()
        environ[ON_DISCONNECT] = partial(on_disconnect, protocol)
        try:
            response = self._application(environ, start)
        except Exception:
            logger.exception("unhandled exception in %s %s", environ["REQUEST_METHOD"], environ["PATH_INFO"])
            protocol.response_bytes(500, [], b"")
            return
        finally:
            environ["wsgi.input"].close()
        # On a connection whose body was not received, the next bytes are that body: close it.
        if self._balance.closes(environ[CONNECTION]) or isinstance(environ["wsgi.input"], _NotReceived):
            start.headers.append(("Connection", "close"))
        if isinstance(response, FileBody):
            self._respond_with_file(protocol, start, response.file)
        elif isinstance(response, PipedResponse):
            if not self._pipes.send(protocol, environ[CONNECTION], start, response.parts):
                _refuse(protocol, environ, errors.Unavailable(errors.SERVER_STOPPING, 1, retry_after_seconds=1))
        elif isinstance(response, PushedResponse):
            response.push.start(ServerResponseWriter(protocol, environ[CONNECTION], start, response.push))
        else:
            protocol.response_bytes(start.status, start.headers, b"".join(response))

    def _respond_with_file(self, protocol: HttpProtocol, head: ResponseHead, file: IO[bytes]) -> None:
        if not any(name.lower() == "content-length" for name, _ in head.headers):
            head.headers.append(("Content-Length", str(os.fstat(file.fileno()).st_size)))
        protocol.response_file(head.status, head.headers, file.name)
        self._files.append((time.monotonic(), file))


class _NotReceived(io.RawIOBase):
    """Input of a request whose body was not received. Reading it fails, since an empty body could be valid."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        raise OSError("the body was not received")

    def readline(self, size: int | None = -1) -> bytes:
        raise OSError("the body was not received")


def _refuse_part(incoming: IncomingRequest) -> None:
    """400 for a message that ended before its Content-Length (RFC 9112, 8): a partial body must not be processed."""
    truncated = Message(
        "it ended before the {0} bytes that Content-Length declares had arrived", incoming.declared or 0
    )
    _refuse(incoming.protocol, incoming.environ, errors.BadRequest(errors.INVALID_BODY, truncated))


def _refuse(protocol: HttpProtocol, environ: dict[str, Any], error: errors.PlatformError) -> None:
    """Send an error response, and close the connection, whose next bytes are the rest of the body."""
    request = WSGIRequest({**environ, "wsgi.input": io.BytesIO()})
    request_id = assign_request_id(request)
    with activate_request_language(request) as language:
        rendered = errors.render(error, correlation_id=request_id, debug=False)
    headers = [("Content-Type", "application/json;charset=utf-8"), ("Content-Language", language)]
    headers += [("Cache-Control", "no-store"), ("Connection", "close"), ("X-Request-Id", request_id)]
    protocol.response_bytes(rendered.status, [*headers, *rendered.headers.items()], orjson.dumps(rendered.body))
    with request_logged_as(request_id):
        logger.info("%s %s %d %s", request.method, request.path, rendered.status, error.code.type)
    # The record is written with the next request of this process.
    record_request(request, HttpResponse(status=rendered.status), error=summary_of(error))
