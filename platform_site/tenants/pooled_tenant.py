"""The pool's state of one tenant."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from typing import Any

from platform_site.tenants.directory import Tenant
from platform_site.tenants.runner import Running


@dataclass(slots=True)
class PooledTenant:
    """A tenant, its listening socket and its process.

    fingerprint    of its settings, as applied; see `fingerprint`
    digest         digest of the checked settings
    is_suspended   whether it is suspended or unfinished
    problem        why it may not be pooled
    listen_error   why the pool cannot listen on its port
    is_watched     whether the pool polls its socket for connections
    due_at         time of its next work (time.time)
    failures       number of consecutive failed starts
    restart_at     earliest time of the next start (time.monotonic)
    waiting_since  time since which a connection waits for the start (time.monotonic)
    """

    tenant: Tenant
    fingerprint: tuple[Any, ...] = ()
    digest: str = ""
    is_suspended: bool = False
    problem: str = ""
    port: int = 0
    listen_error: str = ""
    listening: socket.socket | None = None
    is_watched: bool = False
    running: Running | None = None
    due_at: float = 0.0
    failures: int = 0
    restart_at: float = 0.0
    waiting_since: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether its work is due, and it can be started."""
        can_start = not self.problem and not self.is_suspended and self.listening is not None
        is_free = self.running is None and self.waiting_since is None and self.restart_at <= time.monotonic()
        return can_start and is_free and self.due_at <= time.time()


def fingerprint(tenant: Tenant) -> tuple[Any, ...]:
    """A value that changes with the tenant's settings file, and with what else decides whether it may be started."""
    try:
        status = tenant.settings_file.stat()
    except OSError:
        return ()
    # Not the modification time, which the writer of the file can set.
    return (status.st_ctime_ns, status.st_ino, status.st_size), tenant.is_available, tenant.has_files
