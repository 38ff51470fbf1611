"""Asks and closes connections of the web server, which itself offers only the orderly end of a response."""

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

#: A client that reads nothing of its response for this time has gone, or holds up what others could use.
STALLED_SECONDS: Final = 60.0


class ClientConnection:
    """The connection of a client (address:port) to this process, found among the open files when it is first needed."""

    def __init__(self, client: str) -> None:
        host, _, port = client.rpartition(":")
        self._peer = (ip_address(host.strip("[]")), int(port))
        self._descriptor: int | None = None

    def break_off(self) -> None:
        """Close the connection within its response, whose end the client can tell is missing.

        Closing it is left to the server, which sees the broken connection.
        """
        self._use(lambda held: held.shutdown(socket.SHUT_RDWR))

    def unread_bytes(self) -> int:
        """Number of bytes that the system has still to send to the client; 0 if it is not connected."""
        return self._use(lambda held: int(struct.unpack("i", fcntl.ioctl(held, termios.TIOCOUTQ, b"    "))[0])) or 0

    def _use(self, use: Callable[[socket.socket], T]) -> T | None:
        for descriptor in self._descriptors():
            # A number may be no socket's, or no longer be open. It is not duplicated: closing the duplicate of another
            # file would release its locks.
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
        """The one that was the connection's, then all: looking through thousands takes milliseconds."""
        if self._descriptor is not None:
            yield self._descriptor
        with contextlib.suppress(OSError):  # a root directory without it
            yield from map(int, os.listdir("/dev/fd"))

    def _is_ours(self, held: socket.socket) -> bool:
        if held.type != socket.SOCK_STREAM or held.family not in (socket.AF_INET, socket.AF_INET6):
            return False
        address = held.getpeername()
        return (ip_address(address[0]), address[1]) == self._peer


def break_off(client: str) -> None:
    """Close the connection of this client (address:port); see ClientConnection."""
    ClientConnection(client).break_off()
