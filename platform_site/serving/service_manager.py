"""What systemd is told, so that `systemctl restart` of one node ends when the next one may begin."""

from __future__ import annotations

import contextlib
import os
import socket


def tell(state: str) -> None:
    """Send a state such as READY=1 where a service manager listens (sd_notify(3)); without one nothing happens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # A manager that has gone away is no reason not to serve.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        # "@" stands for the zero byte that begins an abstract address.
        sender.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
