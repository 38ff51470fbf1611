"""Lets many requests wait in one process while one of them works.

CPU-bound work collapses when several threads share one interpreter lock, so a web process works on one request at a
time (docs/decisions.md). A request that waits for something outside, such as the HTTP response to a script, releases
the turn meanwhile (`foundation.turns.waiting`). A long poll (foundation.long_polls) waits without a turn and takes one
only to answer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from foundation.long_polls import LongPoll, chunks
from foundation.turns import turn
from platform_site.serving.exchange import Application, StartResponse
from platform_site.serving.lent_connections import LentConnections


class TurnApplication:
    """A WSGI application whose requests take turns. It returns a list, or the iterator of a long poll."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.working = _Working(LentConnections())
        self._polls = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer the request within a turn."""
        with self.working:
            answer = self.application(environ, start_response)
            if isinstance(answer, list):
                return answer
            poll: LongPoll | None = getattr(answer, "long_poll", None)
            if poll is not None:
                return _Later(chunks(poll, self._answering_a_poll), poll)
            # Collect a streamed response within the turn: the server would iterate it outside.
            try:
                return list(answer)
            finally:
                close = getattr(answer, "close", None)
                if close is not None:
                    close()

    @contextmanager
    def _answering_a_poll(self) -> Iterator[None]:
        """Only one long poll at a time waits for the turn: hundreds that one change wakes must not delay requests."""
        with self._polls, self.working:
            yield


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
    """The response of a long poll; the server iterates it outside of the request's turn."""

    def __init__(self, parts: Iterator[bytes], poll: LongPoll) -> None:
        self._parts = parts
        self._poll = poll

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def close(self) -> None:
        """Called by the server at the end (PEP 3333): all is sent, or the client has disconnected."""
        self._poll.close()
