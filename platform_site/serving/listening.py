"""The socket that a web server listens on: opened by the supervisor, so that it can be closed without losing anyone."""

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
#: A server that takes nobody any more, because it is overloaded or hangs, is not waited for.
DRAIN_TIMEOUT_SECONDS = 2.0

_SO_ATTACH_FILTER = 26  # asm-generic/socket.h
_TCPI_UNACKED_OFFSET = 24  # struct tcp_info of linux/tcp.h; of a listening socket: connections that nobody took yet
# The classic packet filter "drop what has SYN set, pass all else" over a TCP header, as (code, true, false, operand).
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
        """Let nobody connect any more and wait until everybody who did is being served; then the server may stop.

        A listening socket that is closed resets the connections that nobody took from its queue yet, although their
        callers may have sent a request: a proxy cannot send a change again and answers 502. What is dropped here is
        the first packet of a connection, which a proxy tries on another node once its time to connect is over, and any
        other caller sends again. Where the system has no such filter (it is Linux's) the server stops at once.
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
        """Give the address back, once the processes that inherited the socket have ended too."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _waiting(self) -> int:
        assert self._socket is not None
        information = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        waiting: int = struct.unpack_from("I", information, _TCPI_UNACKED_OFFSET)[0]
        return waiting
