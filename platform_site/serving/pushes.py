"""Sends pushed responses (foundation.pushed_responses), without a thread for each.

The server buffers what it is sent without a limit. So after UNREAD_BYTES the client must have read them before more is
sent; one that reads nothing for STALLED_SECONDS is disconnected.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from foundation.pushed_responses import Push
from platform_site.serving.connections import ClientConnection
from platform_site.serving.exchange import HttpProtocol, ResponseHead, Stream

#: Bytes that may wait in the server and the system for one client.
UNREAD_BYTES: Final = 128 * 1024
#: A client that reads nothing for this time has gone.
STALLED_SECONDS: Final = 60.0


class ServerOutlet:
    """The response to one client, as a foundation.pushed_responses.Outlet."""

    def __init__(self, protocol: HttpProtocol, client: str, head: ResponseHead, push: Push) -> None:
        self._connection = ClientConnection(client)
        self._lock = threading.Lock()
        self._stream: Stream | None = protocol.response_stream(head.status, head.headers)
        self._unread = 0
        self._stalled_since: float | None = None
        self._watch = protocol.client_disconnect()
        self._watch.add_done_callback(lambda done: push.close(), context=None)

    def send(self, part: bytes) -> None:
        with self._lock:
            if self._stream is not None:
                self._unread += len(part)
                self._stream.send_bytes(part)

    def end(self) -> None:
        with self._lock:
            # The response ends with the object; the callback would keep the connection.
            ended, self._stream = self._stream, None
        if ended is not None:
            self._watch.cancel()

    def has_room(self) -> bool:
        if self._unread < UNREAD_BYTES:
            return True
        if self._connection.unread_bytes() == 0:
            self._unread, self._stalled_since = 0, None
            return True
        now = time.monotonic()
        self._stalled_since = self._stalled_since or now
        if now - self._stalled_since > STALLED_SECONDS:
            self._connection.break_off()
        return False
