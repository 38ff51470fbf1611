"""Closes connections of the web server, which itself offers only the orderly end of a response."""

from __future__ import annotations

import contextlib
import os
import socket
from ipaddress import ip_address


def break_off(client: str) -> None:
    """Close the connection of this client (address:port) within its response, whose end it can tell is missing.

    Closing it is left to the server, which sees the broken connection.
    """
    host, _, port = client.rpartition(":")
    peer = (ip_address(host.strip("[]")), int(port))
    try:
        open_files = os.listdir("/dev/fd")
    except OSError:  # a root directory without it
        return
    for name in open_files:
        # A number may be no socket's, or no longer be open. It is not duplicated: closing the duplicate of another
        # file would release its locks.
        with contextlib.suppress(OSError):
            held = socket.socket(fileno=int(name))
            try:
                if held.type == socket.SOCK_STREAM and held.family in (socket.AF_INET, socket.AF_INET6):
                    address = held.getpeername()
                    if (ip_address(address[0]), address[1]) == peer:
                        held.shutdown(socket.SHUT_RDWR)
            finally:
                held.detach()
