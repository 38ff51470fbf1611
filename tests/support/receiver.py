"""A real HTTP server on loopback that records what it is sent, byte for byte, and answers as it is told."""

from __future__ import annotations

import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request as it came over the wire. `headers` keeps order, repetition and case; `at` is time.monotonic()."""

    method: str
    path: str
    headers: Message
    body: bytes
    at: float

    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver answers. `delay_seconds` passes before the status line is sent."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0


@dataclass
class LoopbackReceiver:
    """Records requests; answers with the programmed answers in order and then with `default`.

    `respond_with` takes a function of the request instead, for answers that depend on it. With `tls` it speaks https.
    """

    default: Answer = field(default_factory=Answer)
    requests: list[ReceivedRequest] = field(default_factory=list)
    respond_with: Callable[[ReceivedRequest], Answer] | None = None
    tls: ssl.SSLContext | None = None
    _programmed: deque[Answer] = field(default_factory=deque)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Root address, without a trailing slash."""
        assert self._server is not None, "the receiver is not running"
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._server.server_port}"

    def answer(self, *answers: Answer | int) -> None:
        """Programme the next answers; a number is a status with an empty body."""
        self._programmed.extend(Answer(item) if isinstance(item, int) else item for item in answers)

    def wait_for(self, count: int, timeout_seconds: float = 60.0) -> list[ReceivedRequest]:
        """The first `count` requests. Raises TimeoutError saying how many came."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout_seconds):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came in {timeout_seconds} s")
            return self.requests[:count]

    def record(self, request: ReceivedRequest) -> Answer:
        """Keep the request and choose its answer."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            if self.respond_with is not None:
                return self.respond_with(request)
            return self._programmed.popleft() if self._programmed else self.default

    @contextmanager
    def running(self) -> Iterator[LoopbackReceiver]:
        """Serve on a free port until the block ends."""
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        if self.tls is not None:
            # The handshake is a matter of the connection's thread.
            self._server.socket = self.tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # bursts of deliveries must not meet a full backlog

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of many tests and no news."""


def _handler(receiver: LoopbackReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            answer = receiver.record(ReceivedRequest(self.command, self.path, self.headers, body, time.monotonic()))
            if answer.delay_seconds:
                time.sleep(answer.delay_seconds)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

        def log_message(self, format: str, *args: object) -> None:
            """Silent: the requests are recorded."""

    return Handler
