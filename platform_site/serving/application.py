"""The WSGI application for request threads: with pooled connections, and separate long polls."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from foundation.long_polls import LongPoll, chunks
from platform_site.serving.connection_pool import ConnectionPool
from platform_site.serving.exchange import Application, StartResponse


class PooledApplication:
    """A WSGI application. It returns a list, or the iterator of a long poll."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.connections = ConnectionPool()
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
            # Collect a streamed response here: the server iterates it without a connection.
            try:
                return list(answer)
            finally:
                close = getattr(answer, "close", None)
                if close is not None:
                    close()

    @contextmanager
    def _answering_a_poll(self) -> Iterator[None]:
        """One long poll at a time: hundreds that one change wakes must not delay requests."""
        with self._polls, self.connections:
            yield


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
