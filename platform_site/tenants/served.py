"""A tenant as its pool knows it."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import Any

from platform_site.tenants.directory import Tenant
from platform_site.tenants.runner import Running


@dataclass(slots=True)
class Served:
    """A tenant, its listening socket and its process.

    seen           what told that its settings are unchanged
    digest         of the settings that were checked
    problem        why it may not be served
    trouble        why its port cannot be listened on
    is_watched     the pool notices connections
    due_at         when its next work is due, on the clock of time.time
    failures       starts in a row that failed
    restart_at     not started before, on the clock of time.monotonic
    waiting_since  a connection waits for room since then, on that clock, too
    """

    tenant: Tenant
    seen: tuple[Any, ...] = ()
    digest: str = ""
    is_suspended: bool = False
    problem: str = ""
    port: int = 0
    trouble: str = ""
    listening: socket.socket | None = None
    is_watched: bool = False
    running: Running | None = None
    due_at: float = 0.0
    failures: int = 0
    restart_at: float = 0.0
    waiting_since: float | None = None

    @property
    def waits_for_work(self) -> bool:
        """Whether its work is due, and it can be started."""
        can_start = not self.problem and not self.is_suspended and self.listening is not None
        is_free = self.running is None and self.waiting_since is None and self.restart_at <= time.monotonic()
        return can_start and is_free and self.due_at <= time.time()


def seen(tenant: Tenant) -> tuple[Any, ...]:
    """What differs after a change of the tenant's settings, or of whether it is suspended."""
    try:
        status = tenant.settings_file.stat()
    except OSError:
        return ()
    # Not the time of modification, which whoever writes the file sets.
    return (status.st_ctime_ns, status.st_ino, status.st_size), tenant.is_suspended
