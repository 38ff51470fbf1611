"""Long polls: requests that wait for an event or a timeout.

Waiting uses a thread, but no execution slot, database connection or lock. So a long poll waits outside of the request:
the view returns a LongPollResponse, and the server that iterates it, such as platform_site.serving.application, lends
it a database connection while it renders the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from django.http import StreamingHttpResponse

#: White space is allowed before a JSON document (RFC 8259, 2). It keeps proxies from timing out, and only a write shows
#: the server that its client has disconnected.
KEEP_ALIVE = b" "


class LongPoll(Protocol):
    """A wait for an event, and the response to it."""

    def wait(self) -> bool:
        """Block for some seconds without holding shared resources; returns whether to call `answer`."""

    def answer(self) -> bytes | None:
        """The JSON document; None to wait further. The database may be used."""

    def close(self) -> None:
        """Release what the poll holds. May be called twice."""


def chunks(poll: LongPoll, working: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Iterator[bytes]:
    """The response in chunks. `answer` is called inside of `working()`, `wait` outside."""
    try:
        while True:
            if not poll.wait():
                yield KEEP_ALIVE
                continue
            with working():
                content = poll.answer()
            if content is not None:
                yield content
                return
    finally:
        poll.close()


class LongPollResponse(StreamingHttpResponse):
    """200 with a JSON document that `poll` produces later. The status is sent before the wait begins."""

    def __init__(self, poll: LongPoll, **options: Any) -> None:
        super().__init__(chunks(poll), **options)
        self.long_poll = poll

    def close(self) -> None:
        """Called when the client has disconnected or has received the response."""
        super().close()
        self.long_poll.close()
