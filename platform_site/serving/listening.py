"""The listening socket of the web server: opened by the supervisor, so that it can be closed without losing
connections.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import sys
import time
from dataclasses import dataclass, field

from platform_site.serving.addresses import bound

#: Environment variable in which a child process finds its file descriptor.
DESCRIPTOR_VARIABLE = "LISTENING_SOCKET"
#: Connections that were begun before the last one was refused are complete within a round trip to a proxy.
DRAIN_SECONDS = 0.1
#: A server that accepts no connections any more, because it is overloaded or hangs, is not waited for.
DRAIN_TIMEOUT_SECONDS = 2.0

_SO_ATTACH_FILTER = 26  # asm-generic/socket.h
_TCPI_UNACKED_OFFSET = 24  # struct tcp_info of linux/tcp.h; of a listening socket: connections not accepted yet
# Classic BPF filter "drop SYN packets, pass all else" over a TCP header, as (code, true, false, operand).
_DROP_SYN = (
    (0x30, 0, 0, 13),  # load the byte of the flags
    (0x54, 0, 0, 0x02),  # and SYN
    (0x15, 0, 1, 0x02),  # SYN?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # pass
)


@dataclass(slots=True)
class ListeningSocket:
    """An address, and the socket bound to it while a server runs. The server's processes inherit it and listen."""

    host: str
    port: int
    _socket: socket.socket | None = field(default=None, init=False)

    def open(self) -> int:
        """Bind a new socket and return its file descriptor. OSError when the address is taken."""
        self.close()
        self._socket = bound(self.host, self.port)
        return self._socket.fileno()

    def drain(self) -> None:
        """Refuse new connections and wait until the complete ones are accepted; then the server may stop.

        Closing a listening socket resets the connections in its accept queue, although their clients may have sent a
        request: a proxy cannot repeat a change and answers 502. The filter drops only the first packet of a connection,
        which a proxy tries on another node after its connect timeout, and any other client sends again. Where the
        system has no such filter (it is Linux's) the server stops at once.
        """
        if self._socket is None or sys.platform != "linux":
            return
        program = b"".join(struct.pack("HBBI", *instruction) for instruction in _DROP_SYN)
        held = ctypes.create_string_buffer(program)
        try:
            self._socket.setsockopt(
                socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_DROP_SYN), ctypes.addressof(held))
            )
        except OSError:  # a sandbox that forbids filters
            return
        now = time.monotonic()
        quiet_at, deadline = now + DRAIN_SECONDS, now + DRAIN_TIMEOUT_SECONDS
        while (now < quiet_at or self._waiting()) and now < deadline:
            time.sleep(0.01)
            now = time.monotonic()

    def close(self) -> None:
        """Close the socket, once the processes that inherited it have ended."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _waiting(self) -> int:
        assert self._socket is not None
        information = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        waiting: int = struct.unpack_from("I", information, _TCPI_UNACKED_OFFSET)[0]
        return waiting
