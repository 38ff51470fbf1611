"""Answers that wait: a client asks once and is told when there is something, or after a time that there is nothing.

Waiting costs a thread and nothing else: no turn of the process, no database connection, no lock. So the waiting stands
outside of the request's work: the view returns a LongPollResponse, and who serves it (platform_site.serving.turns; any
WSGI server that iterates answers) lets `chunks` wait, and gives it what it needs for the moment of answering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from django.http import StreamingHttpResponse

#: White space is allowed in front of a JSON document (RFC 8259, 2). Proxies count the silence of a server, and a server
#: learns only from writing that its client has gone.
STILL_HERE = b" "


class LongPoll(Protocol):
    """Something that is waited for."""

    def wait(self) -> bool:
        """Block for some seconds, holding nothing that others need; whether it is time to call `answer`."""

    def answer(self) -> bytes | None:
        """The JSON document; None to wait on. The database may be used."""

    def close(self) -> None:
        """Nobody waits any more. May be called twice."""


def chunks(poll: LongPoll, working: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Iterator[bytes]:
    """The answer's bytes. `answer` is called inside of `working()`, `wait` outside."""
    try:
        while True:
            if not poll.wait():
                yield STILL_HERE
                continue
            with working():
                content = poll.answer()
            if content is not None:
                yield content
                return
    finally:
        poll.close()


class LongPollResponse(StreamingHttpResponse):
    """200 with a JSON document that comes when `poll` has one. The status is sent before the waiting begins."""

    def __init__(self, poll: LongPoll, **options: Any) -> None:
        super().__init__(chunks(poll), **options)
        self.long_poll = poll

    def close(self) -> None:
        """The client has gone, or has its answer."""
        super().close()
        self.long_poll.close()
