"""The listening sockets of the web processes, one for each at the same address; closed without losing connections.

Linux assigns a new connection to one of the sockets by a hash of its addresses (SO_REUSEPORT), so the processes do not
compete for it. When a process ends, its socket is closed and the others get its share.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import sys
import time

from platform_site.serving.addresses import bind
from platform_site.serving.connections import STALLED_SECONDS

#: Whether the system distributes connections over sockets at one address; else the processes share one socket.
SPREADS_CONNECTIONS = sys.platform == "linux"
#: Time to wait for handshakes begun before the filter: a round trip to a proxy.
DRAIN_SECONDS = 0.1
#: Maximum wait for a server that accepts no more connections because it is overloaded or hangs.
DRAIN_TIMEOUT_SECONDS = 2.0

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27  # asm-generic/socket.h
_TCPI_UNACKED_OFFSET = 24  # struct tcp_info of linux/tcp.h; of a listening socket: connections not accepted yet
# Classic BPF filter "drop SYN packets, pass all else" over a TCP header, as (code, true, false, operand).
_DROP_SYN = (
    (0x30, 0, 0, 13),  # load the byte of the flags
    (0x54, 0, 0, 0x02),  # and SYN
    (0x15, 0, 1, 0x02),  # SYN?
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # pass
)


def open_listening(host: str, port: int) -> socket.socket:
    """A socket for one of the web processes, bound and not listening yet. Raises OSError if the address is in use."""
    return bind(host, port, is_one_of_several=SPREADS_CONNECTIONS)


def reset_unread(listening: socket.socket) -> None:
    """Have the system reset connections of this socket whose client reads nothing for STALLED_SECONDS.

    The server has no limit for a client that reads none of its response, which it holds in memory. Connections inherit
    the option; on systems other than Linux, which have none like it, such a client keeps its connection.
    """
    if sys.platform == "linux":
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALLED_SECONDS * 1000))


def drain(listening: socket.socket) -> None:
    """Refuse new connections and wait until the established ones are accepted; then the server may stop.

    Closing a listening socket resets the connections in its accept queue, although their clients may have sent a
    request: a proxy cannot retry a write and responds with 502. So a filter drops the first packet (SYN) of new
    connections; a proxy then tries another node after its connect timeout, and other clients send it again. On systems
    other than Linux, which have no such filter, the server stops at once.
    """
    if sys.platform != "linux":
        return
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _DROP_SYN)
    held = ctypes.create_string_buffer(program)
    try:
        listening.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_DROP_SYN), ctypes.addressof(held))
        )
    except OSError:  # a sandbox that forbids filters
        return
    now = time.monotonic()
    quiet_at, deadline = now + DRAIN_SECONDS, now + DRAIN_TIMEOUT_SECONDS
    while (now < quiet_at or _waiting(listening)) and now < deadline:
        time.sleep(0.01)
        now = time.monotonic()


def undrain(listening: socket.socket) -> None:
    """Let new connections wait on a drained socket that stays open, until a process accepts them."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # it was not drained
            listening.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)


def _waiting(listening: socket.socket) -> int:
    information = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    waiting: int = struct.unpack_from("I", information, _TCPI_UNACKED_OFFSET)[0]
    return waiting
