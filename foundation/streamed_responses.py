"""Responses that the web server sends after their request has ended.

    what the response is                      class                   while the client reads it holds
    ----------------------------------------  ----------------------  ---------------------------------------------
    made within the request, of any size      HttpResponse            nothing; above 1 MB a temporary file
    a file written within the request         TemporaryFileResponse   the file
    made at the speed of its client           PipedResponse           a thread, and what its parts hold
    parts that are sent at events             PushedResponse          nothing (foundation.listeners)

platform_site.serving sends each of them. Any other server iterates the response in a thread of its own.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import IO, Any, Protocol

from django.http import HttpResponse, StreamingHttpResponse
from django.utils.http import content_disposition_header

_BLOCK = 64 * 1024


class TemporaryFileResponse(StreamingHttpResponse):
    """A download of `file`, a NamedTemporaryFile, which is closed and so deleted when it has been sent."""

    def __init__(self, file: IO[bytes], *, filename: str, content_type: str, **options: Any) -> None:
        file.flush()
        size = file.seek(0, 2)
        file.seek(0)
        super().__init__(_blocks(file), content_type=content_type, **options)
        self.headers["Content-Length"] = str(size)
        self.headers["Content-Disposition"] = content_disposition_header(True, filename) or ""
        self.temporary_file = file


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while block := file.read(_BLOCK):
            yield block


class Parts(Protocol):
    """A body in parts. `close` may be called twice, and before the first part."""

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None:
        """Release what the body holds. Called when the client has received the body or has disconnected."""


class PipedResponse(StreamingHttpResponse):
    """A response with these parts. They may be made in another thread than the one that executes the request.

    Each has a thread, so a view limits how many of them there are at once.
    """

    def __init__(self, parts: Parts, **options: Any) -> None:
        super().__init__(parts, **options)
        self.parts = parts


class ResponseWriter(Protocol):
    """Writes a pushed response to its client."""

    def send(self, part: bytes) -> None:
        """Send a part, without waiting."""

    def refuse(self, refusal: HttpResponse) -> None:
        """Respond with this one instead, if no part has been sent; its headers replace the response's."""

    def end(self) -> None:
        """End the response. May be called twice."""

    def can_write(self) -> bool:
        """Whether the client reads; if not, parts must wait."""


class Push(Protocol):
    """What is pushed. Its methods are called by any thread."""

    def start(self, writer: ResponseWriter) -> None:
        """The response has begun."""

    def close(self) -> None:
        """The client has disconnected, or the response has ended. May be called twice, and before the start."""


class PushedResponse(StreamingHttpResponse):
    """A response that `push` fills, for as long as the client listens."""

    def __init__(self, push: Push, **options: Any) -> None:
        super().__init__(_iterated(push), **options)
        self.push = push


class _Queue:
    """The writer for a server that iterates the response."""

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

    def can_write(self) -> bool:
        return self.parts.qsize() < self.MAX_PARTS


def _iterated(push: Push) -> Iterator[bytes]:
    writer = _Queue()
    push.start(writer)
    try:
        while (part := writer.parts.get()) is not None:
            yield part
    finally:
        push.close()
