"""The WSGI application for request threads, with pooled connections.

Piped and pushed responses are produced after the request, with resources of their own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import IO, Any

from foundation.execution_slot import defer_to_slot
from foundation.streamed_responses import PipedResponse, PushedResponse, TemporaryFileResponse
from platform_site.serving.connection_pool import ConnectionPool, configure_connections
from platform_site.serving.exchange import RESPONSE_BYTES, Application, FileBody, StartResponse


class PooledApplication:
    """A WSGI application. It returns a list, a FileBody, or a response that is piped or pushed."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.connections = ConnectionPool(configure_connections())

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer the request."""
        with self.connections:
            response = self.application(environ, start_response)
            if isinstance(response, PipedResponse | PushedResponse):
                return response
            if isinstance(response, TemporaryFileResponse):
                response.close()  # leaves the file open, because its iterator has not begun
                return FileBody(response.temporary_file)
            # Read other responses here, since the server would iterate them without database connection.
            try:
                return _read_whole(response)
            finally:
                close = getattr(response, "close", None)
                if close is not None:
                    close()


def _read_whole(parts: Iterable[bytes]) -> list[bytes] | FileBody:
    """All parts: in memory up to RESPONSE_BYTES, else in a file. Lets other requests run between two parts."""
    held: list[bytes] = []
    file: IO[bytes] | None = None
    size = 0
    for part in parts:
        size += len(part)
        if file is None and size > RESPONSE_BYTES:
            file = tempfile.NamedTemporaryFile(prefix="response-")  # noqa: SIM115  (closed after the response)
            file.writelines(held)
        if file is None:
            held.append(part)
        else:
            file.write(part)
        defer_to_slot()
    if file is None:
        return held
    file.flush()
    return FileBody(file)
