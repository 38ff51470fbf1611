"""Responses whose parts are made while the client reads them, at the client's speed.

The server that iterates such a response, platform_site.serving.pipes, has a thread for each. So a view limits how many
of them there are at once; a response of moderate size is better made within the request.
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
    """A response with these parts. They may be made in another thread than the one that executes the request."""

    def __init__(self, parts: Parts, **options: Any) -> None:
        super().__init__(parts, **options)
        self.parts = parts
