"""Lets many requests wait in one process while one of them works.

CPU-bound work collapses when several threads share one interpreter lock, so a web process does one thing at a time
(docs/decisions.md). But a request also waits: for a body that arrives slowly, for an HTTP answer that a script asked
for. If the one thread did that waiting, six half-sent requests would stop an instance. So the server has more threads
than it may work with: each reads its request's body first, then takes the process's turn, and gives it back while it
waits for something outside (`foundation.turns.waiting`). An answer that waits (foundation.long_polls) waits without a
turn altogether and takes one for the moment of answering.
"""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any

import orjson

from foundation.errors import INVALID_BODY, BadRequest, render
from foundation.long_polls import LongPoll, chunks
from foundation.phrases import Phrase
from foundation.turns import CAME_IN_CHUNKS, turn
from platform_site.serving.lent_connections import LentConnections

#: A body up to this size stays in memory; a longer one is kept in a file.
MEMORY_BYTES = 1 << 20
_CHUNK = 1 << 16

StartResponse = Callable[..., Any]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class BufferedApplication:
    """A WSGI application whose requests arrive whole and take turns."""

    def __init__(self, application: Application, *, max_body_bytes: int) -> None:
        self.application = application
        self.max_body_bytes = max_body_bytes
        self._working = _Working(LentConnections())
        self._polls = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Read the body, then let the application answer in its turn."""
        body: IO[bytes] | None = None
        length = environ.get("CONTENT_LENGTH") or ""
        chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        # A length over the limit is refused by the application, which knows how; nothing of it is read.
        if chunked or (length.isdigit() and 0 < int(length) <= self.max_body_bytes):
            with turn.arriving():
                body, missing = self._read(environ, None if chunked else int(length))
            if missing:
                body.close()
                return _refuse_part(start_response, sent=int(length) - missing, declared=int(length))
        with self._working:
            return self._answer(environ, start_response, body)

    def _answer(
        self, environ: dict[str, Any], start_response: StartResponse, body: IO[bytes] | None
    ) -> Iterable[bytes]:
        try:
            answer = self.application(environ, start_response)
            if isinstance(answer, list):
                return answer
            poll: LongPoll | None = getattr(answer, "long_poll", None)
            if poll is not None:
                return _Later(chunks(poll, self._answering_a_poll), poll)
            # A streamed answer is made in this turn too: its iterator would run outside of it.
            try:
                return list(answer)
            finally:
                close = getattr(answer, "close", None)
                if close is not None:
                    close()
        finally:
            if body is not None:
                body.close()

    @contextmanager
    def _answering_a_poll(self) -> Iterator[None]:
        """One of them at a time asks for the turn: two hundred woken by one change would leave none to requests."""
        with self._polls, self._working:
            yield

    def _read(self, environ: dict[str, Any], length: int | None) -> tuple[IO[bytes], int]:
        """The body, and how many bytes of the declared length never came.

        A chunked body gets the length that Django needs to read it (RFC 9112, 7.1).
        """
        source = environ["wsgi.input"]
        body: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115  (closed by _answer)
        missing = self.max_body_bytes + 1 if length is None else length
        while missing > 0:
            part = source.read(min(_CHUNK, missing))
            if not part:
                break
            body.write(part)
            missing -= len(part)
        if length is None:
            environ["CONTENT_LENGTH"] = str(body.tell())
            environ.pop("HTTP_TRANSFER_ENCODING", None)
            environ[CAME_IN_CHUNKS] = True
            missing = 0
        body.seek(0)
        environ["wsgi.input"] = body
        return body, missing


class _Working:
    """The turn, and the process's database connections with it. One object for all threads."""

    def __init__(self, connections: LentConnections) -> None:
        self._connections = connections

    def __enter__(self) -> None:
        turn.__enter__()
        try:
            self._connections.lend()
        except BaseException:
            turn.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._connections.take_back()
        finally:
            turn.__exit__(kind, error, traceback)


class _Later:
    """The answer of a long poll as the server iterates it, outside of the turn in which it was asked for."""

    def __init__(self, parts: Iterator[bytes], poll: LongPoll) -> None:
        self._parts = parts
        self._poll = poll

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def close(self) -> None:
        """The server's last call (PEP 3333): all is sent, or the client has gone."""
        self._poll.close()


def _refuse_part(start_response: StartResponse, *, sent: int, declared: int) -> list[bytes]:
    """400 for a message that ended before its Content-Length (RFC 9112, 8): acting on a part of it would be a guess."""
    broken_off = BadRequest(
        INVALID_BODY, Phrase("only {0} of the {1} bytes that Content-Length declares arrived", sent, declared)
    )
    rendered = render(broken_off, correlation_id=str(uuid.uuid4()), debug=False)
    content = orjson.dumps(rendered.body)
    headers = [("Content-Type", "application/json;charset=utf-8"), ("Content-Length", str(len(content)))]
    start_response("400 Bad Request", [*headers, ("Cache-Control", "no-store"), ("Connection", "close")])
    return [content]
