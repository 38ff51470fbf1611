"""Responses with a temporary file: written within the request, sent afterwards as fast as the client reads.

A client that reads slowly holds neither a thread nor a database connection: platform_site.serving.application hands the
file to the web server. Other servers iterate the response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

_BLOCK = 64 * 1024


class TemporaryFileResponse(StreamingHttpResponse):
    """A download of `file`, a NamedTemporaryFile, which is closed and so deleted when it has been sent."""

    def __init__(self, file: IO[bytes], *, filename: str, content_type: str, **options: Any) -> None:
        file.seek(0, 2)
        size = file.tell()
        file.seek(0)
        super().__init__(_blocks(file), content_type=content_type, **options)
        self.headers["Content-Length"] = str(size)
        self.headers["Content-Disposition"] = content_disposition_header(True, filename) or ""
        self.temporary_file = file


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while block := file.read(_BLOCK):
            yield block
