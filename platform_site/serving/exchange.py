"""Converts requests of the web server granian (RSGI) to WSGI environs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Final, Protocol


class Future(Protocol):
    """A future of granian: a part of a body, or the disconnect of the client."""

    def add_done_callback(self, callback: Callable[[Any], None], context: Any) -> None:
        """Call `callback(self)` in one of the server's threads."""

    def result(self) -> Any:
        """The result. Raises when the connection broke, or after `cancel`."""

    def cancel(self) -> bool:
        """Stop waiting."""


class Parts(Protocol):
    """A body that is being received."""

    def __anext__(self) -> Future:
        """The next part, empty at the end. Raises StopAsyncIteration after the end."""


class Stream(Protocol):
    """A streamed response; it ends when the object is deleted."""

    def send_bytes(self, content: bytes) -> Any:
        """Send a piece; the server buffers it until the client reads it."""


class HttpProtocol(Protocol):
    """RSGIHTTPProtocol of granian 2.8."""

    def __call__(self) -> Future:
        """The whole body."""

    def __aiter__(self) -> Parts:
        """The body in parts; each is read from the connection on request."""

    def client_disconnect(self) -> Future:
        """Done when the client disconnects."""

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Respond once; a second response is dropped."""

    def response_file(self, status: int, headers: list[tuple[str, str]], file: str) -> None:
        """Respond with the content of a file."""

    def response_stream(self, status: int, headers: list[tuple[str, str]]) -> Stream:
        """Begin a streamed response."""


#: A larger response is stored in a file until its client has read it.
RESPONSE_BYTES: Final = 1024 * 1024
#: WSGI's start_response (PEP 3333). The `write` that it returns is not used.
StartResponse = Callable[..., Any]
#: A WSGI application.
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class Scope(Protocol):
    """RSGIHTTPScope of granian 2.8: `client` and `server` are address:port, `path` is decoded."""

    http_version: str
    scheme: str
    method: str
    path: str
    query_string: str
    client: str
    server: str
    authority: str | None
    headers: Any


_SAME: dict[str, Any] = {
    "SCRIPT_NAME": "",
    "wsgi.errors": sys.stderr,
    "wsgi.multiprocess": True,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.version": (1, 0),
}
#: Name of a header → key of the environ; "" for a name that is dropped.
_keys: dict[str, str] = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}
_KEYS_KEPT = 1000
#: Maximum size of a header with all its lines; a longer one is omitted from the environ, where LONG_HEADER names it.
HEADER_BYTES: Final = 16 * 1024
LONG_HEADER: Final = "platform.long_header"


def environ_of(scope: Scope) -> dict[str, Any]:
    """The WSGI environ (PEP 3333), without `wsgi.input`."""
    environ = _SAME.copy()
    path = scope.path
    environ["PATH_INFO"] = path if path.isascii() else path.encode().decode("latin-1")
    environ["REQUEST_METHOD"] = scope.method
    environ["QUERY_STRING"] = scope.query_string
    environ["SERVER_PROTOCOL"] = f"HTTP/{scope.http_version}"
    environ["wsgi.url_scheme"] = scope.scheme
    environ["REMOTE_ADDR"] = scope.client.rpartition(":")[0].strip("[]")
    name, _, environ["SERVER_PORT"] = scope.server.rpartition(":")
    environ["SERVER_NAME"] = name.strip("[]")
    for name, value in scope.headers.items():
        key = _keys.get(name)
        if key is None:
            key = _key(name)
        if len(value) > HEADER_BYTES or (key in environ and len(environ[key]) + len(value) > HEADER_BYTES):
            environ[LONG_HEADER] = name
        elif key in environ:
            # RFC 9110, 5.3; for cookies RFC 9113, 8.2.3.
            environ[key] += ("; " if key == "HTTP_COOKIE" else ",") + value
        elif key:
            environ[key] = value
    if "HTTP_HOST" not in environ:
        environ["HTTP_HOST"] = scope.authority or ""
    for name in scope.headers.keys():  # noqa: SIM118  (granian: no mapping)
        # granian drops values that are not ASCII; a condition or an id must not count as absent because of that.
        if key := _keys.get(name) or _key(name):
            environ.setdefault(key, "")
    return environ


def _key(name: str) -> str:
    # X_Forwarded_For would be read as X-Forwarded-For: such names are dropped, as nginx does.
    key = "" if "_" in name else f"HTTP_{name.upper().replace('-', '_')}"
    if len(_keys) < _KEYS_KEPT:
        _keys[name] = key
    return key


class ResponseHead:
    """A start_response that stores status and headers until the body is complete."""

    __slots__ = ("headers", "status")

    def __init__(self) -> None:
        self.status = 500
        self.headers: list[tuple[str, str]] = []

    def __call__(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        self.status = int(status[:3])
        self.headers = headers


class FileBody:
    """A response body (PEP 3333) with the content of a file that the server opens by its name."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.file)


def on_disconnect(protocol: HttpProtocol, callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` when the client disconnects; returns a function that cancels this.

    Without cancelling, the server keeps the callback as long as the connection.
    """
    future = protocol.client_disconnect()
    future.add_done_callback(lambda done: callback(), context=None)

    def end() -> None:
        future.cancel()

    return end
