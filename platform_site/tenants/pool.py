"""The pool: the one process that listens for all tenants, and starts and stops their processes.

It has no threads and opens no database, so that a process can be forked from it at any time and inherits no data of
another tenant. It scans the directory of tenants about once a second.
"""

from __future__ import annotations

import resource
import selectors
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from foundation import errors
from platform_site.serving import service_manager
from platform_site.serving.addresses import bind
from platform_site.serving.children import RESTART_DELAY_SECONDS
from platform_site.serving.console import Console
from platform_site.serving.granian_server import BACKLOG
from platform_site.serving.listening import undrain
from platform_site.tenants import process
from platform_site.tenants.directory import Review, review, tenants
from platform_site.tenants.due_work import MAX_DELAY
from platform_site.tenants.pooled_tenant import PooledTenant, fingerprint
from platform_site.tenants.refusals import Refusals
from platform_site.tenants.runner import Runner

#: Interval between two scans of the directory of tenants.
SCAN_SECONDS: Final = 0.8
_TICK_SECONDS: Final = 0.1
#: If the maximum number of tenants runs, a connection waits this long for one of them to stop; then it is refused.
MAX_WAIT_SECONDS: Final = 15.0
#: If the maximum number of tenants runs, one without a request for this time is stopped in advance of the next start.
SPARE_IDLE_SECONDS: Final = 10.0
#: A connection to a tenant whose next restart is at most this far away waits; otherwise it is refused.
_SOON_SECONDS: Final = 2.0
#: A tenant with a request within this time is in use, and is not stopped for another one, …
IN_USE_SECONDS: Final = 3.0
#: … but if all are in use and a connection has waited this long, the tenant that has run longest is stopped for it, …
PREEMPT_AFTER_SECONDS: Final = 5.0
#: … if it has run for at least this time. Without preemption, callers of the running tenants could starve the others.
MIN_RUN_SECONDS: Final = 60.0
SUSPENDED_RETRY_SECONDS: Final = 60
#: A tenant that exited without writing when its next work is due is started after this time.
_AFTER_FAILURE_SECONDS: Final = 60


@dataclass
class Pool:
    """Serves the tenants of a directory. Used once."""

    console: Console
    directory: Path
    max_running: int
    idle_seconds: float
    _tenants: dict[str, PooledTenant] = field(default_factory=dict)
    _stop_requested: bool = False
    _kill_now: bool = False
    _scanned_at: float = float("-inf")
    _scan_error: str = ""

    def __post_init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._refusals = Refusals(self._selector)
        self._runner = Runner(self._selector, self.max_running, self._close_inherited)

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or SIGHUP."""
        # A socket for each tenant.
        most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._scan()
        self.console.say(f"Serving {len(self._tenants)} tenants, at most {self.max_running} of them at once.")
        self.console.say("ready")
        service_manager.notify("READY=1")
        while not self._stop_requested:
            self._wait()
            self._run_once()

    def stop(self) -> None:
        """Stop all tenants in order; those that do not stop in time are killed. A second signal kills them at once."""
        self._stop_requested = True
        for pooled in self._tenants.values():
            self._stop(pooled)
            self._watch(pooled)
        while self._runner.running:
            self._wait()
            self._collect_exited()
        for pooled in self._tenants.values():
            self._close(pooled)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._kill_now = self._stop_requested
        self._stop_requested = True

    def _wait(self) -> None:
        for key, _events in self._selector.select(_TICK_SECONDS):
            key.data(key.fileobj)

    def _run_once(self) -> None:
        self._collect_exited()
        self._refusals.close_expired()
        now = time.monotonic()
        if now - self._scanned_at >= SCAN_SECONDS:
            self._scan()
            self._start_due()
            self._runner.rotate_logs()
        waiting = [(each.waiting_since, each) for each in self._tenants.values() if each.waiting_since is not None]
        for _since, pooled in sorted(waiting, key=lambda each: each[0]):
            self._start_or_wait(pooled)
        if not self._runner.has_capacity and self.max_running > 1:
            # So that the next tenant can be started at once.
            self._runner.stop_idle(SPARE_IDLE_SECONDS)

    # --- the directory ------------------------------------------------------------------------------------------------

    def _scan(self) -> None:
        """Apply the changes of the directory."""
        self._scanned_at = time.monotonic()
        for pooled in self._tenants.values():
            if pooled.running is None and pooled.listening is not None:
                # A web process that outlived its supervisor may have drained the socket.
                undrain(pooled.listening)
        try:
            self._apply_changes()
            self._scan_error = ""
        except OSError as error:  # a full disk, or too many open files: the running tenants continue
            if str(error) != self._scan_error:
                self.console.say(self.console.paint(f"The directory of tenants cannot be read: {error}", "red"))
            self._scan_error = str(error)

    def _apply_changes(self) -> None:
        if not self.directory.is_dir():
            return  # not created yet, or its file system is not mounted for a moment
        found = {tenant.name: tenant for tenant in tenants(self.directory)}
        states = {name: fingerprint(tenant) for name, tenant in found.items()}
        if all(name in self._tenants and self._tenants[name].fingerprint == states[name] for name in found) and (
            len(found) == len(self._tenants)
        ):
            return
        reviewed = review(self.directory)
        for name in self._tenants.keys() - found.keys():
            self._remove(self._tenants[name])
        for name, tenant in found.items():
            if name not in self._tenants:
                self._tenants[name] = PooledTenant(
                    tenant, due_at=min(tenant.due_at(), time.time() + _start_delay(name))
                )
            pooled = self._tenants[name]
            if pooled.fingerprint != states[name] or pooled.problem != reviewed.problems.get(name, ""):
                self._apply_change(pooled, states[name], reviewed)

    def _apply_change(self, pooled: PooledTenant, state: tuple[Any, ...], reviewed: Review) -> None:
        tenant = pooled.tenant
        problem, settings = reviewed.problems.get(tenant.name, ""), reviewed.settings.get(tenant.name)
        digest = settings.digest if settings else ""
        is_new_file = pooled.digest != digest
        if problem and problem != pooled.problem:
            self.console.say(self.console.paint(f"{tenant.name}: {problem}", "red"))
        pooled.fingerprint, pooled.problem, pooled.is_suspended = state, problem, not tenant.is_available
        pooled.digest = digest
        pooled.failures, pooled.restart_at = 0, 0.0
        if pooled.running and (is_new_file or problem or pooled.is_suspended):
            self._stop(pooled)
        port = reviewed.port(tenant.name)
        if settings and port is None:
            self._close(pooled)  # another tenant has the port, or may get it
        try:
            if port is not None and (pooled.listening is None or pooled.port != port):
                self._close(pooled)
                pooled.port = port
                pooled.listening = bind("127.0.0.1", port)
                pooled.listening.listen(BACKLOG)
                pooled.listening.setblocking(False)
        except OSError as error:
            if str(error) != pooled.listen_error:
                self.console.say(self.console.paint(f"{tenant.name} cannot be reached: {error}", "red"))
            pooled.listen_error, pooled.fingerprint = str(error), ()  # tried again
            return
        pooled.listen_error = ""
        self._watch(pooled)

    def _remove(self, pooled: PooledTenant) -> None:
        self._stop(pooled)
        self._close(pooled)
        if pooled.running is None:
            del self._tenants[pooled.tenant.name]

    # --- connections --------------------------------------------------------------------------------------------------

    def _watch(self, pooled: PooledTenant) -> None:
        """Accept connections to a stopped tenant here; the processes of a running tenant accept their own."""
        is_free = pooled.running is None and pooled.waiting_since is None and not self._stop_requested
        wanted = pooled.listening is not None and is_free
        if wanted and not pooled.is_watched:
            assert pooled.listening is not None
            self._selector.register(pooled.listening, selectors.EVENT_READ, lambda _: self._on_connection(pooled))
        elif not wanted and pooled.is_watched:
            assert pooled.listening is not None
            self._selector.unregister(pooled.listening)
        pooled.is_watched = wanted

    def _on_connection(self, pooled: PooledTenant) -> None:
        if pooled.problem or pooled.is_suspended:
            self._refuse(pooled, errors.INSTANCE_SUSPENDED, SUSPENDED_RETRY_SECONDS)
        elif (left := pooled.restart_at - time.monotonic()) > _SOON_SECONDS:
            self._refuse(pooled, errors.INSTANCE_UNAVAILABLE, int(left) + 1)
        else:
            pooled.waiting_since = time.monotonic()
            self._start_or_wait(pooled)
            self._watch(pooled)

    def _refuse(self, pooled: PooledTenant, code: errors.ErrorCode, seconds: int) -> None:
        assert pooled.listening is not None
        self._refusals.accept(pooled.listening, errors.Unavailable(code, seconds, retry_after_seconds=seconds))

    # --- running tenants ----------------------------------------------------------------------------------------------

    def _start_or_wait(self, pooled: PooledTenant) -> None:
        """Start a tenant for which a connection waits, if the number of running tenants permits it."""
        assert pooled.waiting_since is not None
        if pooled.problem or pooled.is_suspended or pooled.running is not None:
            pooled.waiting_since = None
            self._watch(pooled)
            return
        if self._runner.has_capacity:
            if pooled.restart_at <= time.monotonic():
                pooled.waiting_since = None
                self._start(pooled, self.idle_seconds)
            return
        self._runner.stop_idle(IN_USE_SECONDS)
        waited = time.monotonic() - pooled.waiting_since
        if waited > PREEMPT_AFTER_SECONDS:
            self._runner.preempt_longest(MIN_RUN_SECONDS)
        if waited > MAX_WAIT_SECONDS:
            pooled.waiting_since = None
            self._refuse(pooled, errors.INSTANCE_UNAVAILABLE, int(IN_USE_SECONDS))
            self._watch(pooled)

    def _start_due(self) -> None:
        """Start the tenants whose work is due, the longest overdue first."""
        waiting = [pooled for pooled in self._tenants.values() if pooled.is_due]
        for pooled in sorted(waiting, key=lambda each: each.due_at):
            if not self._runner.has_capacity:
                self._runner.stop_idle(process.WORK_SECONDS)
                return
            self._start(pooled, process.WORK_SECONDS)

    def _start(self, pooled: PooledTenant, idle_seconds: float) -> None:
        assert pooled.listening is not None
        pooled.due_at = time.time() + MAX_DELAY.total_seconds()
        try:
            pooled.running = self._runner.start(pooled.tenant, pooled.digest, pooled.listening, idle_seconds)
        except OSError as error:
            self._record_failure(pooled, f"could not be started: {error}")
        self._watch(pooled)

    def _close_inherited(self, listening: socket.socket) -> None:
        """In a forked process: close the sockets of other tenants."""
        for pooled in self._tenants.values():
            if pooled.listening is not None and pooled.listening is not listening:
                pooled.listening.close()
        self._tenants.clear()
        self._refusals.close()

    def _stop(self, pooled: PooledTenant) -> None:
        if pooled.running is not None:
            self._runner.stop(pooled.running)

    def _collect_exited(self) -> None:
        """Update the state of tenants whose processes have exited."""
        for pooled in list(self._tenants.values()):
            running = pooled.running
            if running is None or not self._runner.has_exited(running, kill_now=self._kill_now):
                continue
            pooled.running = None
            if self._runner.remove(running):
                if running.last_used is not None:
                    pooled.failures = 0
                self._record_failure(pooled, f"ended; {pooled.tenant.log_file} says why")
            else:
                pooled.failures = 0
                pooled.due_at = min(pooled.tenant.due_at(), time.time() + MAX_DELAY.total_seconds())
            if pooled.listening is None and not pooled.tenant.exists:
                del self._tenants[pooled.tenant.name]
                continue
            if pooled.listening is not None:
                undrain(pooled.listening)
            self._watch(pooled)

    def _record_failure(self, pooled: PooledTenant, what: str) -> None:
        """Delay the next start after repeated failures; not after the first one: the process may have been killed."""
        now = time.monotonic()
        pooled.failures += 1
        delay = (0.0, *RESTART_DELAY_SECONDS)[min(pooled.failures, len(RESTART_DELAY_SECONDS) + 1) - 1]
        pooled.restart_at = now + delay
        pooled.due_at = time.time() + _AFTER_FAILURE_SECONDS
        self.console.say(self.console.paint(f"{pooled.tenant.name} {what}.", "red"))

    def _close(self, pooled: PooledTenant) -> None:
        if pooled.listening is not None:
            if pooled.is_watched:
                self._selector.unregister(pooled.listening)
                pooled.is_watched = False
            pooled.listening.close()
            pooled.listening = None
        pooled.waiting_since = None  # closing the socket has reset the waiting connections


def _start_delay(name: str) -> float:
    """Seconds until a tenant that never ran is started for its work: spreads the starts of all tenants over an hour."""
    return (sum(name.encode()) * 7919) % 3600
