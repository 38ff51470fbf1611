"""Notifies systemd of readiness, so that `systemctl restart` returns when the next node may be restarted."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Send a state such as READY=1 to the service manager (sd_notify(3)); does nothing without one."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    # An unavailable service manager must not stop the instance.
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        # A leading "@" means the zero byte of an abstract address.
        sender.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
