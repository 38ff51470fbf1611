"""A client of a pushed response that reads all that it is sent."""

from __future__ import annotations

from django.http import HttpResponse


class ReadResponseWriter:
    """A foundation.streamed_responses.ResponseWriter that keeps the parts."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.is_ended = False

    def send(self, part: bytes) -> None:
        self.parts.append(part)

    def refuse(self, refusal: HttpResponse) -> None:
        raise AssertionError("a part has been sent")

    def end(self) -> None:
        self.is_ended = True

    def can_write(self) -> bool:
        return True
