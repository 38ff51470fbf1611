"""Starts and stops the processes of tenants, within a maximum number of running tenants."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path
from socket import socket
from typing import Final

from platform_site.serving.children import STOP_TIMEOUT_SECONDS, begin, fork
from platform_site.tenants import process
from platform_site.tenants.directory import Tenant

#: A tenant that does not stop in this time is killed: somewhat longer than its supervisor gives its own processes.
_KILL_SECONDS: Final = STOP_TIMEOUT_SECONDS + 5
#: A longer log is rotated; one earlier log is kept.
_LOG_BYTES: Final = 10_000_000


@dataclass(slots=True, eq=False)
class Running:
    """The main process of a tenant, which supervises the tenant's other processes. Times are of time.monotonic.

    log         file with the output of its processes
    status      reading end of the pipe by which the tenant reports requests; -1 once closed
    unread      received beginning of an incomplete line
    last_used   time of its last report; None while it starts
    stop_by     time at which it is killed; None until it is asked to stop
    """

    process: ForkProcess
    log: Path
    status: int
    started: float
    last_used: float | None = None
    unread: bytes = b""
    stop_by: float | None = None

    def idle_seconds(self) -> float:
        """Time since its last report; 0 while it starts, since a connection or work waits for it."""
        return 0.0 if self.last_used is None else time.monotonic() - self.last_used


class Runner:
    """The running tenants of a pool, at max_running `max_running` at once.

    close_inherited   called in a forked process: closes the open sockets of the pool except the given one
    """

    def __init__(
        self, selector: selectors.BaseSelector, max_running: int, close_inherited: Callable[[socket], None]
    ) -> None:
        self.max_running = max_running
        self.running: list[Running] = []
        self._selector = selector
        self._close_inherited = close_inherited

    @property
    def has_capacity(self) -> bool:
        """Whether another tenant may be started."""
        return len(self.running) < self.max_running

    def stop_idle(self, idle_seconds: float) -> None:
        """Stop the least recently used tenant, if it is idle for this time and none is stopping already."""
        if any(running.stop_by is not None for running in self.running):
            return
        longest = max(self.running, key=Running.idle_seconds)
        if longest.idle_seconds() > idle_seconds:
            self.stop(longest)

    def preempt_longest(self, seconds: float) -> None:
        """Stop the tenant that has run longest, if it has run for this time and none is stopping already."""
        longest = min(self.running, key=lambda running: running.started)
        is_over = time.monotonic() - longest.started > seconds
        if is_over and all(running.stop_by is None for running in self.running):
            self.stop(longest)

    def start(self, tenant: Tenant, digest: str, listening: socket, idle_seconds: float) -> Running:
        """Start the process of a tenant with the settings of this digest.

        Raises OSError if there is no memory for it, or the limit of processes is reached.
        """
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        try:
            forked = fork(self._run, tenant, digest, listening, idle_seconds, reading, writing, os.getpid())
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        running = Running(forked, tenant.log_file, reading, time.monotonic())
        self._selector.register(reading, selectors.EVENT_READ, lambda _: self._read(running))
        self.running.append(running)
        return running

    def _run(
        self, tenant: Tenant, digest: str, listening: socket, idle_seconds: float, reading: int, writing: int, pool: int
    ) -> None:
        """The main function of a tenant's process. Closes every descriptor of other tenants."""
        os.close(reading)
        self._close_inherited(listening)
        self._selector.close()
        _close_pipes(but={0, 1, 2, listening.fileno(), writing})
        begin(f"platform: tenant {tenant.name}", pool, _open_log(tenant.log_file))
        process.serve(tenant, digest, listening, writing, idle_seconds)

    def stop(self, running: Running) -> None:
        """Send SIGTERM; `has_exited` kills a process that does not stop in time."""
        if running.stop_by is None:
            running.stop_by = time.monotonic() + _KILL_SECONDS
            running.process.terminate()

    def rotate_logs(self) -> None:
        """Rotate the long logs of running tenants."""
        for running in self.running:
            _rotate(running.log)

    def has_exited(self, running: Running, *, kill_now: bool) -> bool:
        """Whether it has exited. Kills a stopping process after its time, with `kill_now` at once."""
        if not running.process.is_alive():
            return True
        if running.stop_by is not None and (kill_now or time.monotonic() > running.stop_by):
            running.process.kill()
        return False

    def remove(self, running: Running) -> bool:
        """Remove an exited process; returns whether it failed."""
        self._read(running)
        self._end_status(running)
        self.running.remove(running)
        failed = running.process.exitcode != 0 and running.stop_by is None
        running.process.close()
        return failed

    def _read(self, running: Running) -> None:
        if running.status < 0:
            return
        try:
            received = os.read(running.status, 4096)
        except BlockingIOError:
            return
        if not received:
            self._end_status(running)
            return
        *lines, running.unread = (running.unread + received).split(b"\n")
        if process.USED.encode() in lines:
            running.last_used = time.monotonic()

    def _end_status(self, running: Running) -> None:
        if running.status >= 0:
            self._selector.unregister(running.status)
            os.close(running.status)
            running.status = -1


def _close_pipes(but: set[int]) -> None:
    """Close the pipes of multiprocessing and of the pool to other tenants."""
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself
            if int(name) not in but and stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                os.close(int(name))


def _rotate(log: Path) -> None:
    """Copy a long log and truncate it, since its writers keep it open; lines written in between are lost."""
    with contextlib.suppress(OSError):
        if log.stat().st_size > _LOG_BYTES:
            with contextlib.suppress(OSError):  # on a full disk the log is truncated without a copy
                shutil.copyfile(log, log.with_suffix(".1.txt"))
            os.truncate(log, 0)


def _open_log(path: Path) -> int:
    _rotate(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
