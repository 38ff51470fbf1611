"""Responses whose parts are produced while the client reads them, at the client's speed.

The server that iterates such a response, platform_site.serving.pipes, uses a thread for each, so views limit their
number. A response of moderate size is better produced within the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from django.http import StreamingHttpResponse


class Parts(Protocol):
    """A body in parts. `close` may be called twice, and before the first part."""

    def __iter__(self) -> Iterator[bytes]: ...

    def close(self) -> None:
        """Release what the body holds. Called when the client has received the body or has disconnected."""


class PipedResponse(StreamingHttpResponse):
    """A response with these parts. Another thread than the request's may produce them."""

    def __init__(self, parts: Parts, **options: Any) -> None:
        super().__init__(parts, **options)
        self.parts = parts
