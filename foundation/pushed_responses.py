"""Responses whose parts are sent as events occur, until the client disconnects.

The server that sends such a response, platform_site.serving.pushes, needs no thread for it. Any other server iterates
it, in a thread of its own.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any, Protocol

from django.http import HttpResponse, StreamingHttpResponse


class Outlet(Protocol):
    """The connection to the client."""

    def send(self, part: bytes) -> None:
        """Send a part, without waiting."""

    def refuse(self, refusal: HttpResponse) -> None:
        """Send this response instead, if no part has been sent; its headers replace the response's."""

    def end(self) -> None:
        """End the response. May be called twice."""

    def has_room(self) -> bool:
        """Whether the send buffer has room; if not, parts must wait."""


class Push(Protocol):
    """The source of the parts. Its methods are called by any thread."""

    def start(self, outlet: Outlet) -> None:
        """The response has begun."""

    def close(self) -> None:
        """The client has disconnected, or the response has ended. May be called twice, and before the start."""


class PushedResponse(StreamingHttpResponse):
    """A response with the parts of `push`."""

    def __init__(self, push: Push, **options: Any) -> None:
        super().__init__(_iterated(push), **options)
        self.push = push


class _Queue:
    """The outlet of a server that iterates the response."""

    MAX_PARTS = 100

    def __init__(self) -> None:
        self.parts: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def send(self, part: bytes) -> None:
        self.parts.put(part)

    def refuse(self, refusal: HttpResponse) -> None:
        """Send only the body: such a server has sent the status before the first part."""
        self.send(refusal.content)
        self.end()

    def end(self) -> None:
        self.parts.put(None)

    def has_room(self) -> bool:
        return self.parts.qsize() < self.MAX_PARTS


def _iterated(push: Push) -> Iterator[bytes]:
    outlet = _Queue()
    push.start(outlet)
    try:
        while (part := outlet.parts.get()) is not None:
            yield part
    finally:
        push.close()
