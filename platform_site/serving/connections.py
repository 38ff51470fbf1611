"""Inspects and aborts connections of the web server, which itself can only end a response in order."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import termios
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final, TypeVar

T = TypeVar("T")

#: Maximum time in which a client reads nothing of its response; then its connection is closed.
STALLED_SECONDS: Final = 60.0


class ClientConnection:
    """The connection of a client (address:port) to this process, found among the open files on first use."""

    def __init__(self, client: str) -> None:
        host, _, port = client.rpartition(":")
        self._peer = (ip_address(host.strip("[]")), int(port))
        self._descriptor: int | None = None

    def abort(self) -> None:
        """Shut down the connection in the middle of a response, so that the client detects the truncation.

        The server closes it, since it notices the broken connection.
        """
        self._use(lambda held: held.shutdown(socket.SHUT_RDWR))

    def unread_bytes(self) -> int:
        """Number of bytes in the system's send buffer for the client; 0 if it is not connected."""
        return self._use(lambda held: int(struct.unpack("i", fcntl.ioctl(held, termios.TIOCOUTQ, b"    "))[0])) or 0

    def _use(self, use: Callable[[socket.socket], T]) -> T | None:
        for descriptor in self._descriptors():
            # The descriptor may not be a socket, or be closed. Do not duplicate it: closing the duplicate of a file
            # would release its locks.
            with contextlib.suppress(OSError):
                held = socket.socket(fileno=descriptor)
                try:
                    if self._is_ours(held):
                        self._descriptor = descriptor
                        return use(held)
                finally:
                    held.detach()
        return None

    def _descriptors(self) -> Iterator[int]:
        """The descriptor found last, then all, since searching thousands takes milliseconds."""
        if self._descriptor is not None:
            yield self._descriptor
        with contextlib.suppress(OSError):  # a chroot without /dev/fd
            yield from map(int, os.listdir("/dev/fd"))

    def _is_ours(self, held: socket.socket) -> bool:
        if held.type != socket.SOCK_STREAM or held.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        address = held.getpeername()
        return (ip_address(address[0]), address[1]) == self._peer


def abort(client: str) -> None:
    """Close the connection of this client (address:port); see ClientConnection."""
    ClientConnection(client).abort()
