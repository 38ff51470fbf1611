"""Sends pushed responses (foundation.streamed_responses) without a thread for each.

The server buffers sent data without a limit. So after UNREAD_BYTES nothing more is sent until the client has read them;
a client that reads nothing for STALLED_SECONDS is disconnected.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from django.http import HttpResponse

from foundation.streamed_responses import Push
from platform_site.serving.connections import STALLED_SECONDS, ClientConnection
from platform_site.serving.exchange import HttpProtocol, ResponseHead, Stream, on_disconnect

#: Maximum unread bytes for one client in the buffers of the server and the system.
UNREAD_BYTES: Final = 128 * 1024


class ServerResponseWriter:
    """The response to one client, as a foundation.streamed_responses.ResponseWriter."""

    def __init__(self, protocol: HttpProtocol, client: str, head: ResponseHead, push: Push) -> None:
        self._connection = ClientConnection(client)
        self._lock = threading.Lock()
        self._protocol, self._head = protocol, head
        # The head is sent with the first part: until then an error response is possible.
        self._stream: Stream | None = None
        self._is_ended = False
        self._unread = 0
        self._stalled_since: float | None = None
        self._end_watch = on_disconnect(protocol, push.close)

    def send(self, part: bytes) -> None:
        with self._lock:
            if not self._is_ended:
                self._unread += len(part)
                self._begun().send_bytes(part)

    def refuse(self, refusal: HttpResponse) -> None:
        with self._lock:
            if self._stream is None and not self._is_ended:
                self._is_ended = True
                replaced = {name.lower() for name in refusal.headers}
                headers = [(name, value) for name, value in self._head.headers if name.lower() not in replaced]
                self._protocol.response_bytes(refusal.status_code, [*headers, *refusal.items()], refusal.content)
        self._end_watch()

    def end(self) -> None:
        with self._lock:
            if not self._is_ended:
                self._is_ended = True
                self._begun()
            # Deleting the stream ends the response; the callback would keep the connection.
            self._stream = None
        self._end_watch()

    def _begun(self) -> Stream:
        if self._stream is None:
            self._stream = self._protocol.response_stream(self._head.status, self._head.headers)
        return self._stream

    def can_write(self) -> bool:
        if self._unread < UNREAD_BYTES:
            return True
        if self._connection.unread_bytes() == 0:
            self._unread, self._stalled_since = 0, None
            return True
        now = time.monotonic()
        self._stalled_since = self._stalled_since or now
        if now - self._stalled_since > STALLED_SECONDS:
            self._connection.abort()
        return False
