"""Responses whose parts are sent when something happens, for as long as the client listens.

The server that sends such a response, platform_site.serving.pushes, needs no thread for it. Any other server iterates
it, in a thread of its own.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any, Protocol

from django.http import HttpResponse, StreamingHttpResponse


class Outlet(Protocol):
    """The way to the client."""

    def send(self, part: bytes) -> None:
        """Send a part, without waiting."""

    def refuse(self, refusal: HttpResponse) -> None:
        """Respond with this one instead, if no part has been sent; its headers replace the response's."""

    def end(self) -> None:
        """End the response. May be called twice."""

    def has_room(self) -> bool:
        """Whether the client reads; if not, parts must wait."""


class Push(Protocol):
    """What is pushed. Its methods are called by any thread."""

    def start(self, outlet: Outlet) -> None:
        """The response has begun."""

    def close(self) -> None:
        """The client has disconnected, or the response has ended. May be called twice, and before the start."""


class PushedResponse(StreamingHttpResponse):
    """A response that `push` fills."""

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
        """The body alone: such a server has sent the status before the first part."""
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
