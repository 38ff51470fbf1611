"""Responds with 503 for a tenant that does not run, in the process of the pool."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import time
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from foundation import errors

#: Maximum number of open connections; further ones are closed without a response.
MAX_CONNECTIONS: Final = 200
#: Time for a client to send its request and receive the response.
TIMEOUT_SECONDS: Final = 3.0
_READ_BYTES: Final = 65_536


@dataclass(slots=True)
class _Refused:
    """A refused connection. deadline: of time.monotonic."""

    connection: socket.socket
    response: bytes
    deadline: float
    is_sent: bool = False


class Refusals:
    """The open refused connections, registered with the selector of the pool."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._open: dict[int, _Refused] = {}

    def accept(self, listening: socket.socket, error: errors.Unavailable) -> None:
        """Accept and refuse the waiting connections of a non-blocking listening socket."""
        response = _response(error)
        for _ in range(MAX_CONNECTIONS):
            try:
                connection, _address = listening.accept()
            except OSError:  # none is left
                return
            if len(self._open) >= MAX_CONNECTIONS:
                connection.close()
                continue
            connection.setblocking(False)
            refused = _Refused(connection, response, time.monotonic() + TIMEOUT_SECONDS)
            self._open[connection.fileno()] = refused
            self._selector.register(connection, selectors.EVENT_READ, self._on_data)

    def _on_data(self, connection: socket.socket) -> None:
        """Respond to the first bytes of the request; then read the rest, so that closing causes no reset."""
        refused = self._open[connection.fileno()]
        try:
            received = connection.recv(_READ_BYTES)
            if received and not refused.is_sent:
                refused.is_sent = True
                is_head = received.startswith(b"HEAD ")
                connection.send(
                    refused.response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if is_head else refused.response
                )
                connection.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._close(refused)

    def close_expired(self) -> None:
        """Close the connections whose deadline has passed."""
        now = time.monotonic()
        for refused in [each for each in self._open.values() if each.deadline < now]:
            self._close(refused)

    def close(self) -> None:
        """Close all: in a forked process, to which they do not belong."""
        for refused in self._open.values():
            refused.connection.close()
        self._open.clear()

    def _close(self, refused: _Refused) -> None:
        del self._open[refused.connection.fileno()]
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(refused.connection)
        refused.connection.close()


def _response(error: errors.Unavailable) -> bytes:
    rendered = errors.render(error, correlation_id="", debug=False)
    # No log has this request, so an id would be useless.
    rendered.body["error"]["info"] = "The pool of tenants answered; no process of the instance was started."
    body = json.dumps(rendered.body).encode()
    headers = {
        "Date": formatdate(usegmt=True),
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "Connection": "close",
        **rendered.headers,
    }
    lines = [
        f"HTTP/1.1 503 {HTTPStatus.SERVICE_UNAVAILABLE.phrase}",
        *(f"{name}: {each}" for name, each in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
