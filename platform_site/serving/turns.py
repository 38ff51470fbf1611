"""The application as request threads call it: with the turn of the process, and database connections that go with it.

A request that waits for something outside, such as the HTTP response to a script, gives the turn back meanwhile
(`foundation.turns.waiting`). A long poll (foundation.long_polls) waits without a turn and takes one only to answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from foundation.long_polls import LongPoll, chunks
from foundation.turns import turn
from platform_site.serving.lent_connections import LentConnections

StartResponse = Callable[..., Any]
Application = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]


class TurnApplication:
    """A WSGI application, called by who has the turn. It returns a list, or the iterator of a long poll."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.connections = LentConnections()
        self._polls = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer the request."""
        with self.connections:
            answer = self.application(environ, start_response)
            if isinstance(answer, list):
                return answer
            poll: LongPoll | None = getattr(answer, "long_poll", None)
            if poll is not None:
                return _Later(chunks(poll, partial(self._answering_a_poll, turn.caller)), poll)
            # Collect a streamed response within the turn: the server would iterate it outside.
            try:
                return list(answer)
            finally:
                close = getattr(answer, "close", None)
                if close is not None:
                    close()

    @contextmanager
    def _answering_a_poll(self, caller: str) -> Iterator[None]:
        """Only one long poll at a time waits for the turn: hundreds that one change wakes must not delay requests."""
        with self._polls:
            turn.enter(caller)
            try:
                with self.connections:
                    yield
            finally:
                turn.leave()


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
