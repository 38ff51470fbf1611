"""The pool: the one process that listens for all tenants, and starts and stops their processes.

It has no threads and opens no database, so that a process can be forked from it at any time, which inherits nothing of
another tenant. It looks at the directory of tenants once in a second.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import socket
import stat
import time
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType
from typing import Any, Final

import psutil
from django.conf import settings
from django.template import engines
from django.utils.module_loading import import_string
from django.utils.translation.trans_real import translation

from foundation import errors
from platform_site.serving import service_manager
from platform_site.serving.addresses import bound
from platform_site.serving.children import RESTART_DELAY_SECONDS, STOP_TIMEOUT_SECONDS, begin, fork
from platform_site.serving.console import Console
from platform_site.serving.granian_server import BACKLOG
from platform_site.serving.listening import undrain
from platform_site.tenants import process
from platform_site.tenants.directory import Tenant, TenantError, conflicts, tenants
from platform_site.tenants.due_work import LATEST
from platform_site.tenants.refusals import Refusals

#: The pool looks at the directory of tenants so often.
LOOK_SECONDS: Final = 0.8
_TICK_SECONDS: Final = 0.1
#: A connection that finds no room waits this long for another tenant to stop; then it is refused.
ROOM_SECONDS: Final = 15.0
#: One that has had no request for this time stops when as many run as may, so that there is room for another one.
SPARE_SECONDS: Final = 10.0
#: Connections wait for a tenant that is started again within this time.
_SOON_SECONDS: Final = 2.0
#: A tenant with a request within this time is in use, and makes no room.
IN_USE_SECONDS: Final = 3.0
#: What is running is stopped within this time: somewhat longer than a tenant's own processes have.
_KILL_SECONDS: Final = STOP_TIMEOUT_SECONDS + 5
SUSPENDED_RETRY_SECONDS: Final = 60
#: A tenant that ended without saying when its next work is due is started after this time.
_AFTER_FAILURE_SECONDS: Final = 60
#: Measured (docs/operations.md): the code, which all share, and what a tenant's processes have of their own.
SHARED_BYTES: Final = 150_000_000
TENANT_BYTES: Final = 190_000_000
MOST_BYTES: Final = 1_500_000_000
#: A log that is longer is set aside when the tenant starts; the one before is removed.
_LOG_BYTES: Final = 10_000_000


def load_code() -> None:
    """Load what processes of tenants load when they start, besides what `serve` loads: it is memory that they share.

    Nothing of it may depend on a setting that tenants have.
    """
    for path in settings.MIDDLEWARE:
        import_string(path)
    for name in ("django_q.cluster", "platform_site.management.commands.qcluster", "whitenoise.storage"):
        import_module(name)
    engines.all()
    for code, _name in settings.LANGUAGES:
        translation(code)


def running_by_memory(memory_bytes: int) -> int:
    """How many tenants run at once on a machine with that memory."""
    return max(1, int((min(memory_bytes / 2, MOST_BYTES) - SHARED_BYTES) // TENANT_BYTES))


@dataclass(slots=True)
class Served:
    """A tenant as the pool knows it. Times are on the clock of time.monotonic, due_at on that of time.time.

    seen          what told that its settings are unchanged
    problem       why it may not be served
    trouble       why its port cannot be listened on
    waiting_since a connection waits for room since then
    """

    tenant: Tenant
    seen: tuple[Any, ...] = ()
    port: int = 0
    is_suspended: bool = False
    problem: str = ""
    trouble: str = ""
    listening: socket.socket | None = None
    process: ForkProcess | None = None
    status: int = -1
    unread: bytes = b""
    started: float = 0.0
    last_used: float = 0.0
    stop_by: float | None = None
    due_at: float = 0.0
    failures: int = 0
    restart_at: float = 0.0
    waiting_since: float | None = None
    is_watched: bool = False


@dataclass
class Pool:
    """Serves the tenants of a directory. Used once."""

    console: Console
    directory: Path
    most_running: int
    idle_seconds: float
    _served: dict[str, Served] = field(default_factory=dict)
    _stop_requested: bool = False
    _is_impatient: bool = False
    _looked: float = float("-inf")

    def __post_init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._refusals = Refusals(self._selector)

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or SIGHUP."""
        # A socket for each tenant.
        most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self._look()
        self.console.say(f"Serving {len(self._served)} tenants, at most {self.most_running} of them at once.")
        self.console.say("ready")
        service_manager.notify("READY=1")
        while not self._stop_requested:
            self._wait()
            self._step()

    def stop(self) -> None:
        """Stop all tenants in order; those that do not stop in time are killed. A second signal kills them at once."""
        self._stop_requested = True
        for served in self._served.values():
            self._stop(served)
            self._watch(served)
        while any(served.process for served in self._served.values()):
            self._wait()
            self._bury()
        for served in self._served.values():
            self._close(served)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_impatient = self._stop_requested
        self._stop_requested = True

    def _wait(self) -> None:
        for key, _events in self._selector.select(_TICK_SECONDS):
            key.data(key.fileobj)

    def _step(self) -> None:
        self._bury()
        self._refusals.close_late()
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._look()
            self._wake_for_work()
        for served in [each for each in self._served.values() if each.waiting_since is not None]:
            self._start_or_wait(served)
        if not self._has_room() and self.most_running > 1:
            # So that the next tenant that is asked finds room at once.
            self._make_room(SPARE_SECONDS)

    # --- the directory ------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take up what has changed in the directory."""
        self._looked = time.monotonic()
        for served in self._served.values():
            if served.process is None and served.listening is not None:
                # A web process that outlived its supervisor may have drained the socket since.
                undrain(served.listening)
        if not self.directory.is_dir():
            return  # not made yet, or its file system is away for a moment
        found = {tenant.name: tenant for tenant in tenants(self.directory)}
        seen = {name: _seen(tenant) for name, tenant in found.items()}
        if all(name in self._served and self._served[name].seen == seen[name] for name in found) and (
            len(found) == len(self._served)
        ):
            return
        problems = conflicts(found.values())
        for name in self._served.keys() - found.keys():
            self._forget(self._served[name])
        for name, tenant in found.items():
            if name not in self._served:
                self._served[name] = Served(tenant, due_at=min(tenant.due_at(), time.time() + _spread(name)))
            served = self._served[name]
            if served.seen != seen[name] or served.problem != problems.get(name, ""):
                self._take_up(served, seen[name], problems.get(name, ""))

    def _take_up(self, served: Served, seen: tuple[Any, ...], problem: str) -> None:
        tenant = served.tenant
        is_new_file = served.seen[:1] != seen[:1]
        if problem and problem != served.problem:
            self.console.say(self.console.paint(f"{tenant.name}: {problem}", "red"))
        served.seen, served.problem, served.is_suspended = seen, problem, tenant.is_suspended
        served.failures, served.restart_at = 0, 0.0
        if served.process and (is_new_file or problem or served.is_suspended):
            self._stop(served)
        try:
            port = tenant.port
            if served.listening is None or served.port != port:
                self._close(served)
                served.port = port
                served.listening = bound("127.0.0.1", port)
                served.listening.listen(BACKLOG)
                served.listening.setblocking(False)
        except (TenantError, OSError) as error:
            if str(error) != served.trouble:
                self.console.say(self.console.paint(f"{tenant.name} cannot be reached: {error}", "red"))
            served.trouble, served.seen = str(error), ()  # tried again
            return
        served.trouble = ""
        self._watch(served)

    def _forget(self, served: Served) -> None:
        self._stop(served)
        self._close(served)
        served.waiting_since = None
        if served.process is None:
            del self._served[served.tenant.name]

    # --- connections --------------------------------------------------------------------------------------------------

    def _watch(self, served: Served) -> None:
        """Notice connections to a tenant that does not run; a running one accepts its own."""
        is_free = served.process is None and served.waiting_since is None and not self._stop_requested
        wanted = served.listening is not None and is_free
        if wanted and not served.is_watched:
            assert served.listening is not None
            self._selector.register(served.listening, selectors.EVENT_READ, lambda _: self._on_connection(served))
        elif not wanted and served.is_watched:
            assert served.listening is not None
            self._selector.unregister(served.listening)
        served.is_watched = wanted

    def _on_connection(self, served: Served) -> None:
        if served.problem or served.is_suspended:
            self._refuse(served, errors.INSTANCE_SUSPENDED, SUSPENDED_RETRY_SECONDS)
        elif (left := served.restart_at - time.monotonic()) > _SOON_SECONDS:
            self._refuse(served, errors.INSTANCE_UNAVAILABLE, int(left) + 1)
        else:
            served.waiting_since = time.monotonic()
            self._start_or_wait(served)
            self._watch(served)

    def _refuse(self, served: Served, code: errors.ErrorCode, seconds: int) -> None:
        assert served.listening is not None
        self._refusals.accept(served.listening, errors.Unavailable(code, seconds, retry_after_seconds=seconds))

    # --- running tenants ----------------------------------------------------------------------------------------------

    def _start_or_wait(self, served: Served) -> None:
        """Start a tenant for which a connection waits, when there is room."""
        assert served.waiting_since is not None
        if served.problem or served.is_suspended or served.process is not None:
            served.waiting_since = None
            self._watch(served)
            return
        if self._has_room():
            if served.restart_at <= time.monotonic():
                served.waiting_since = None
                self._start(served, self.idle_seconds)
            return
        self._make_room(IN_USE_SECONDS)
        if time.monotonic() - served.waiting_since > ROOM_SECONDS:
            served.waiting_since = None
            self._refuse(served, errors.INSTANCE_UNAVAILABLE, int(IN_USE_SECONDS))
            self._watch(served)

    def _running(self) -> list[Served]:
        return [served for served in self._served.values() if served.process is not None]

    def _has_room(self) -> bool:
        return len(self._running()) < self.most_running

    def _make_room(self, idle_seconds: float) -> None:
        """Stop the tenant that was used least recently, unless one is stopping already, or all were used lately."""
        running = self._running()
        if any(served.stop_by is not None for served in running):
            return
        now = time.monotonic()
        idle = [served for served in running if now - max(served.last_used, served.started) > idle_seconds]
        if idle:
            self._stop(min(idle, key=lambda served: max(served.last_used, served.started)))

    def _wake_for_work(self) -> None:
        """Start tenants whose work is due, those first that wait longest."""
        for served in sorted(filter(_waits_for_work, self._served.values()), key=lambda each: each.due_at):
            if not self._has_room():
                self._make_room(process.WORK_SECONDS)
                return
            self._start(served, process.WORK_SECONDS)

    def _start(self, served: Served, idle_seconds: float) -> None:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        served.started = served.last_used = time.monotonic()
        served.due_at = time.time() + LATEST.total_seconds()
        served.stop_by, served.unread = None, b""
        served.status = reading
        try:
            served.process = fork(self._run_tenant, served, idle_seconds, reading, writing, os.getpid())
        except OSError as error:  # no memory, or too many processes
            os.close(reading)
            served.status = -1
            self._note_failure(served, f"could not be started: {error}")
            self._watch(served)
            return
        finally:
            os.close(writing)
        self._selector.register(reading, selectors.EVENT_READ, lambda _: self._read(served))
        self._watch(served)

    def _run_tenant(self, served: Served, idle_seconds: float, reading: int, status: int, pool: int) -> None:
        """The main function of a tenant's process: it keeps nothing that is another tenant's."""
        os.close(reading)
        listening = served.listening
        assert listening is not None
        for other in self._served.values():
            if other is not served and other.listening is not None:
                other.listening.close()
        self._refusals.close()
        self._selector.close()
        self._served.clear()
        _close_pipes(but={0, 1, 2, listening.fileno(), status})
        begin(f"platform: tenant {served.tenant.name}", pool, _open_log(served.tenant))
        process.serve(served.tenant, listening, status, idle_seconds)

    def _read(self, served: Served) -> None:
        if served.status < 0:
            return
        try:
            received = os.read(served.status, 4096)
        except BlockingIOError:
            return
        if not received:
            self._end_status(served)
            return
        *lines, served.unread = (served.unread + received).split(b"\n")
        for line in lines:
            if line.decode(errors="replace") == process.USED:
                served.last_used = time.monotonic()

    def _end_status(self, served: Served) -> None:
        if served.status >= 0:
            self._selector.unregister(served.status)
            os.close(served.status)
            served.status = -1

    def _stop(self, served: Served) -> None:
        """Ask a running tenant to stop in order."""
        if served.process is not None and served.stop_by is None:
            served.stop_by = time.monotonic() + _KILL_SECONDS
            served.process.terminate()

    def _bury(self) -> None:
        """Note which tenants have ended."""
        for served in self._running():
            ended = served.process
            assert ended is not None
            if ended.is_alive():
                if served.stop_by is not None and (self._is_impatient or time.monotonic() > served.stop_by):
                    ended.kill()
                continue
            self._read(served)
            self._end_status(served)
            served.process = None
            failed = ended.exitcode != 0 and served.stop_by is None
            ended.close()
            if failed:
                self._note_failure(served, f"ended; {served.tenant.log_file} says why")
            else:
                served.failures = 0
                served.due_at = min(served.tenant.due_at(), time.time() + LATEST.total_seconds())
            served.stop_by = None
            if served.listening is None and not served.tenant.settings_file.exists():
                self._served.pop(served.tenant.name, None)
                continue
            if served.listening is not None:
                undrain(served.listening)
            self._watch(served)

    def _note_failure(self, served: Served, what: str) -> None:
        """A tenant that has not come up twice is not started at once; one that was killed later is."""
        now = time.monotonic()
        if served.last_used > served.started:
            served.failures = 0
        served.failures += 1
        # The first time at once: somebody may have killed it.
        delay = (0.0, *RESTART_DELAY_SECONDS)[min(served.failures, len(RESTART_DELAY_SECONDS) + 1) - 1]
        served.restart_at = now + delay
        served.due_at = time.time() + _AFTER_FAILURE_SECONDS
        self.console.say(self.console.paint(f"{served.tenant.name} {what}.", "red"))

    def _close(self, served: Served) -> None:
        if served.listening is not None:
            if served.is_watched:
                self._selector.unregister(served.listening)
                served.is_watched = False
            served.listening.close()
            served.listening = None


def _waits_for_work(served: Served) -> bool:
    can_start = not served.problem and not served.is_suspended and served.listening is not None
    is_free = served.process is None and served.waiting_since is None and served.restart_at <= time.monotonic()
    return can_start and is_free and served.due_at <= time.time()


def machine_memory() -> int:
    """Bytes of memory that this machine has."""
    total: int = psutil.virtual_memory().total
    return total


def _close_pipes(but: set[int]) -> None:
    """Close what multiprocessing and the pool have open to other tenants."""
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # that of the listing itself
            if int(name) not in but and stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                os.close(int(name))


def _seen(tenant: Tenant) -> tuple[Any, ...]:
    try:
        status = tenant.settings_file.stat()
    except OSError:
        return ()
    return (status.st_mtime_ns, status.st_ino, status.st_size), tenant.is_suspended


def _spread(name: str) -> float:
    """Seconds until a tenant that never ran is started for its work: not all of them at once."""
    return (sum(name.encode()) * 7919) % 3600


def _open_log(tenant: Tenant) -> int:
    path = tenant.log_file
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size > _LOG_BYTES:
            path.replace(path.with_suffix(".1.txt"))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
