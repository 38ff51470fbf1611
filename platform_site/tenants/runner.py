"""Starts the processes of tenants, and stops them: when nobody uses them and others need room, and in the end."""

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

#: What is running is stopped within this time: somewhat longer than a tenant's own processes have.
_KILL_SECONDS: Final = STOP_TIMEOUT_SECONDS + 5
#: A log that is longer is set aside; the one before is removed.
_LOG_BYTES: Final = 10_000_000


@dataclass(slots=True, eq=False)
class Running:
    """The process of a tenant, which supervises all others of it. Times are on the clock of time.monotonic.

    log         what its processes print
    status      descriptor from which the pool reads that the tenant is used
    unread      the beginning of a line from there
    last_used   when it was ready, and then when it said last that it is used; None while it starts
    stop_by     when it is killed, once it was asked to stop
    """

    process: ForkProcess
    log: Path
    status: int
    started: float
    last_used: float | None = None
    unread: bytes = b""
    stop_by: float | None = None

    def idle_seconds(self) -> float:
        """Time since it was used; 0 while it starts, since a connection or work waits for it."""
        return 0.0 if self.last_used is None else time.monotonic() - self.last_used


class Runner:
    """The running tenants of a pool, at most `most` at once.

    let_go   called in a new process, to close what the pool has open; all but the listening socket that it is given
    """

    def __init__(self, selector: selectors.BaseSelector, most: int, let_go: Callable[[socket], None]) -> None:
        self.most = most
        self.running: list[Running] = []
        self._selector = selector
        self._let_go = let_go

    @property
    def has_room(self) -> bool:
        """Whether another tenant may be started."""
        return len(self.running) < self.most

    def make_room(self, idle_seconds: float) -> None:
        """Stop the tenant that was used least recently, unless one is stopping already, or all were used lately."""
        if any(running.stop_by is not None for running in self.running):
            return
        longest = max(self.running, key=Running.idle_seconds)
        if longest.idle_seconds() > idle_seconds:
            self.stop(longest)

    def end_turn(self, seconds: float) -> None:
        """Stop the tenant that has run longest, if it has for that time, unless one is stopping already."""
        longest = min(self.running, key=lambda running: running.started)
        is_over = time.monotonic() - longest.started > seconds
        if is_over and all(running.stop_by is None for running in self.running):
            self.stop(longest)

    def start(self, tenant: Tenant, digest: str, listening: socket, idle_seconds: float) -> Running:
        """Start the process of a tenant with the settings of this digest.

        Raises OSError without memory, or if there are too many processes.
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
        """The main function of a tenant's process: it keeps nothing that is another tenant's."""
        os.close(reading)
        self._let_go(listening)
        self._selector.close()
        _close_pipes(but={0, 1, 2, listening.fileno(), writing})
        begin(f"platform: tenant {tenant.name}", pool, _open_log(tenant.log_file))
        process.serve(tenant, digest, listening, writing, idle_seconds)

    def stop(self, running: Running) -> None:
        """Ask it to stop in order; `has_ended` kills one that does not in time."""
        if running.stop_by is None:
            running.stop_by = time.monotonic() + _KILL_SECONDS
            running.process.terminate()

    def keep_logs_short(self) -> None:
        """Set long logs of running tenants aside."""
        for running in self.running:
            _set_aside(running.log)

    def has_ended(self, running: Running, *, is_impatient: bool) -> bool:
        """Whether it has ended. One that should have stopped by now, or at once, is killed."""
        if not running.process.is_alive():
            return True
        if running.stop_by is not None and (is_impatient or time.monotonic() > running.stop_by):
            running.process.kill()
        return False

    def remove(self, running: Running) -> bool:
        """Forget one that has ended; returns whether it failed."""
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
    """Close what multiprocessing and the pool have open to other tenants."""
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself
            if int(name) not in but and stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                os.close(int(name))


def _set_aside(log: Path) -> None:
    """Copy a long log and empty it, since its writers have it open; what they write meanwhile is lost."""
    with contextlib.suppress(OSError):
        if log.stat().st_size > _LOG_BYTES:
            with contextlib.suppress(OSError):  # on a full disk it is emptied all the more
                shutil.copyfile(log, log.with_suffix(".1.txt"))
            os.truncate(log, 0)


def _open_log(path: Path) -> int:
    _set_aside(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
