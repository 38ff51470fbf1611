"""The process of a running tenant: it applies the settings, then supervises web server and worker as `serve` does."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections

from platform_site.serving import addresses, granian_server, preparation
from platform_site.serving.children import Child, StartFailed, Supervisor
from platform_site.serving.connection_balance import SharedCounts
from platform_site.serving.console import Console
from platform_site.tenants.directory import Tenant
from platform_site.tenants.due_work import MAX_DELAY, next_due
from platform_site.tenants.settings_change import apply
from platform_site.tenants.tenant_settings import TenantError

logger = logging.getLogger("platform.tenants")

READY_TIMEOUT_SECONDS = 60.0
#: The tenant's previous processes have this time to exit.
LOCK_TIMEOUT_SECONDS = 30.0
#: Minimum run time of a tenant that was started for due work: its worker checks the schedules every 30 seconds.
WORK_SECONDS = 40.0
#: The tenant does not stop if its next work is due within this time.
SOON_SECONDS = 5.0
#: The line that it reports to the pool when it is ready, and while it has requests.
USED = "used"


def serve(tenant: Tenant, digest: str, listening: socket.socket, status: int, idle_seconds: float) -> None:
    """Serve until SIGTERM, or until there was no request for `idle_seconds` and no work is due.

    digest   digest of the settings that the pool has checked and compared with those of other tenants
    status   writing end of the pipe by which it reports requests to the pool
    Exits with status 1 and a sentence in the log if it cannot be started.
    """
    # Code that reads the arguments must not mistake this process for `serve` on a port of the pool.
    sys.argv[1:] = ["tenants", "run", tenant.name]
    with _locked(tenant):
        try:
            if not tenant.is_available:
                raise TenantError("it has just been suspended, or a command changes it.")
            found = tenant.read()
            if found.digest != digest:
                raise TenantError("its settings have just been changed, and the pool has not checked them yet.")
            if problem := tenant.missing_data(found):
                raise TenantError(problem)
            apply(tenant.environment(found.values))
            _check_exposure()
            preparation.prepare(print, collects_static=False)
        except (ImproperlyConfigured, RuntimeError, TenantError) as error:
            sys.exit(f"{tenant.name} cannot be started: {error}")
        counts = SharedCounts(settings.WEB_PROCESSES)
        supervisor = Supervisor(Console(), _children(listening, counts))
        activity = _Activity(counts, status, idle_seconds)
        try:
            supervisor.start()
            if supervisor.wait_until(_is_responding, timeout_seconds=READY_TIMEOUT_SECONDS):
                activity.report(USED)
                supervisor.run(until=activity.is_idle)
        except StartFailed as error:
            sys.exit(f"{tenant.name} did not start: {error}")
        finally:
            supervisor.stop()
        tenant.write_due_at(_due_timestamp())


@contextlib.contextmanager
def _locked(tenant: Tenant) -> Iterator[None]:
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while (lock := tenant.lock()) is None:
        if time.monotonic() > deadline:
            sys.exit(f"{tenant.name} is served or changed by another process.")
        time.sleep(0.05)
    with lock:
        yield


def _check_exposure() -> None:
    problem = addresses.exposure_problem(
        settings.HOST, settings.BASE_URL, debug=settings.DEBUG, demo=settings.DEMO, accepts_risk=False
    )
    if (
        problem is None
        and addresses.reached_by_others(settings.HOST, settings.BASE_URL)
        and (preparation.has_demo_logins())
    ):
        problem = "Its data comes from demo mode and has publicly known logins."
    if problem:
        raise TenantError(problem)


def _is_responding() -> bool:
    return addresses.is_responding(settings.HOST, settings.PORT, name=settings.ALLOWED_HOSTS[0])


def _children(listening: socket.socket, counts: SharedCounts) -> list[Child]:
    web = Child(
        "web",
        lambda: granian_server.serve(
            settings.HOST, settings.PORT, workers=settings.WEB_PROCESSES, listening=listening, counts=counts
        ),
    )
    return [web, Child("worker", lambda: call_command("qcluster"), waits=True)]


class _Activity:
    """Tracks the tenant's requests, and reports them to the pool."""

    def __init__(self, counts: SharedCounts, status: int, idle_seconds: float) -> None:
        self._counts = counts
        self._status = status
        self._idle_seconds = idle_seconds
        self._last_used = self._checked_at = time.monotonic()

    def is_idle(self) -> bool:
        """Whether the tenant may stop; checked at most once a second."""
        now = time.monotonic()
        if now - self._checked_at < 1:
            return False
        self._checked_at = now
        if sum(self._counts.read()) > 0:
            self._last_used = now
            self.report(USED)
        return now - self._last_used >= self._idle_seconds and _due_timestamp() > time.time() + SOON_SECONDS

    def report(self, text: str) -> None:
        """Write a line to the pool, if it still runs."""
        with contextlib.suppress(OSError):
            os.write(self._status, f"{text}\n".encode())


def _due_timestamp() -> float:
    """The time of the next due work; the latest possible time if the database does not respond."""
    try:
        return next_due().timestamp()
    except Exception:
        logger.warning("could not find out when work is due", exc_info=True)
        return time.time() + MAX_DELAY.total_seconds()
    finally:
        # The children are forked from this process.
        connections.close_all()
