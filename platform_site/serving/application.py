"""The WSGI application for request threads: with pooled connections, separate long polls, and files as they are.

Piped responses are made outside of the request, with what they hold themselves.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from foundation.execution_slot import defer_to_slot
from foundation.long_polls import LongPoll, chunks
from foundation.piped_responses import Parts
from foundation.pushed_responses import Push
from platform_site.serving.connection_pool import ConnectionPool, configure_connections
from platform_site.serving.exchange import (
    RESPONSE_BYTES,
    Application,
    FileAnswer,
    PipedAnswer,
    PushedAnswer,
    StartResponse,
)


class PooledApplication:
    """A WSGI application. It returns a list, a file, piped or pushed answer, or the iterator of a long poll."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.connections = ConnectionPool(configure_connections())
        self._polls = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer the request."""
        with self.connections:
            answer = self.application(environ, start_response)
            if isinstance(answer, list):
                return answer
            poll: LongPoll | None = getattr(answer, "long_poll", None)
            if poll is not None:
                return _PollAnswer(chunks(poll, self._answering_a_poll), poll)
            parts: Parts | None = getattr(answer, "parts", None)
            if parts is not None:
                return PipedAnswer(parts)
            push: Push | None = getattr(answer, "push", None)
            if push is not None:
                return PushedAnswer(push)
            file: IO[bytes] | None = getattr(answer, "temporary_file", None)
            if file is not None:
                answer.close()  # type: ignore[attr-defined]  # leaves the file open: its iterator has not begun
                return FileAnswer(file)
            # Read a streamed response here: the server would iterate it without a connection.
            try:
                return _read_whole(answer)
            finally:
                close = getattr(answer, "close", None)
                if close is not None:
                    close()

    @contextmanager
    def _answering_a_poll(self) -> Iterator[None]:
        """One long poll at a time: hundreds that one change wakes must not delay requests."""
        with self._polls, self.connections:
            yield


def _read_whole(parts: Iterable[bytes]) -> list[bytes] | FileAnswer:
    """All parts: in memory up to RESPONSE_BYTES, else in a file. Other requests go first between two parts."""
    held: list[bytes] = []
    file: IO[bytes] | None = None
    size = 0
    for part in parts:
        size += len(part)
        if file is None and size > RESPONSE_BYTES:
            file = tempfile.NamedTemporaryFile(prefix="response-")  # noqa: SIM115  (closed after the response)
            file.writelines(held)
        if file is None:
            held.append(part)
        else:
            file.write(part)
        defer_to_slot()
    if file is None:
        return held
    file.flush()
    return FileAnswer(file)


class _PollAnswer:
    """The response of a long poll; the server iterates it in a thread of its own."""

    def __init__(self, parts: Iterator[bytes], poll: LongPoll) -> None:
        self._parts = parts
        self._poll = poll

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def close(self) -> None:
        """Called by the server at the end (PEP 3333): everything is sent, or the client has disconnected."""
        self._poll.close()
