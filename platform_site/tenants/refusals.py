"""Answers 503 in place of a tenant that does not run, without a process for it."""

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

#: Requests that are answered at once; further connections are closed.
MOST: Final = 200
#: A client has this time to send its request and take the answer.
SECONDS: Final = 3.0
_READ_BYTES: Final = 65_536


@dataclass(slots=True)
class _Refused:
    """A connection. until: on the clock of time.monotonic."""

    connection: socket.socket
    answer: bytes
    until: float
    is_answered: bool = False


class Refusals:
    """The connections that are refused, beside whatever else the selector of the pool watches."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._open: dict[int, _Refused] = {}

    def accept(self, listening: socket.socket, error: errors.Unavailable) -> None:
        """Refuse the connections that wait on a socket, which does not block."""
        answer = _answer(error)
        for _ in range(MOST):
            try:
                connection, _address = listening.accept()
            except OSError:  # none is left
                return
            if len(self._open) >= MOST:
                connection.close()
                continue
            connection.setblocking(False)
            refused = _Refused(connection, answer, time.monotonic() + SECONDS)
            self._open[connection.fileno()] = refused
            self._selector.register(connection, selectors.EVENT_READ, self._on_data)

    def _on_data(self, connection: socket.socket) -> None:
        """Answer when the request, or a part of it, has come; then read on, so that closing does not reset."""
        refused = self._open[connection.fileno()]
        try:
            received = connection.recv(_READ_BYTES)
            if received and not refused.is_answered:
                refused.is_answered = True
                is_head = received.startswith(b"HEAD ")
                connection.send(refused.answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if is_head else refused.answer)
                connection.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            received = b""
        if not received:
            self._close(refused)

    def close_late(self) -> None:
        """Close the connections whose time is over."""
        now = time.monotonic()
        for refused in [each for each in self._open.values() if each.until < now]:
            self._close(refused)

    def close(self) -> None:
        """Close all: in a forked process, whose they are not."""
        for refused in self._open.values():
            refused.connection.close()
        self._open.clear()

    def _close(self, refused: _Refused) -> None:
        del self._open[refused.connection.fileno()]
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(refused.connection)
        refused.connection.close()


def _answer(error: errors.Unavailable) -> bytes:
    rendered = errors.render(error, correlation_id="", debug=False)
    # There is no request in a log to which an id could lead.
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
