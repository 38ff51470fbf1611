"""The pool: the one process that listens for all tenants, and starts and stops their processes.

It has no threads and opens no database, so that a process can be forked from it at any time, which inherits nothing of
another tenant. It looks at the directory of tenants about once in a second.
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
from platform_site.serving.addresses import bound
from platform_site.serving.children import RESTART_DELAY_SECONDS
from platform_site.serving.console import Console
from platform_site.serving.granian_server import BACKLOG
from platform_site.serving.listening import undrain
from platform_site.tenants import process
from platform_site.tenants.directory import Review, review, tenants
from platform_site.tenants.due_work import LATEST
from platform_site.tenants.refusals import Refusals
from platform_site.tenants.runner import Runner
from platform_site.tenants.served import Served, seen

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
#: When all are in use and a connection has waited so long, the tenant that has run longest stops for it, …
TURN_WAIT_SECONDS: Final = 5.0
#: … if it has run for this time: callers of as many tenants as may run keep no other tenant away.
TURN_SECONDS: Final = 60.0
SUSPENDED_RETRY_SECONDS: Final = 60
#: A tenant that ended without saying when its next work is due is started after this time.
_AFTER_FAILURE_SECONDS: Final = 60


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
    _trouble: str = ""

    def __post_init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._refusals = Refusals(self._selector)
        self._runner = Runner(self._selector, self.most_running, self._let_go)

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
        while self._runner.running:
            self._wait()
            self._note_ended()
        for served in self._served.values():
            self._close(served)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_impatient = self._stop_requested
        self._stop_requested = True

    def _wait(self) -> None:
        for key, _events in self._selector.select(_TICK_SECONDS):
            key.data(key.fileobj)

    def _step(self) -> None:
        self._note_ended()
        self._refusals.close_late()
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._look()
            self._wake_for_work()
            self._runner.keep_logs_short()
        waiting = [(each.waiting_since, each) for each in self._served.values() if each.waiting_since is not None]
        for _since, served in sorted(waiting, key=lambda each: each[0]):
            self._start_or_wait(served)
        if not self._runner.has_room and self.most_running > 1:
            # So that the next tenant that is asked finds room at once.
            self._runner.make_room(SPARE_SECONDS)

    # --- the directory ------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take up what has changed in the directory."""
        self._looked = time.monotonic()
        for served in self._served.values():
            if served.running is None and served.listening is not None:
                # A web process that outlived its supervisor may have drained the socket since.
                undrain(served.listening)
        try:
            self._take_up_all()
            self._trouble = ""
        except OSError as error:  # a full disk, or too many open files: those that are served go on
            if str(error) != self._trouble:
                self.console.say(self.console.paint(f"The directory of tenants cannot be read: {error}", "red"))
            self._trouble = str(error)

    def _take_up_all(self) -> None:
        if not self.directory.is_dir():
            return  # not made yet, or its file system is away for a moment
        found = {tenant.name: tenant for tenant in tenants(self.directory)}
        states = {name: seen(tenant) for name, tenant in found.items()}
        if all(name in self._served and self._served[name].seen == states[name] for name in found) and (
            len(found) == len(self._served)
        ):
            return
        reviewed = review(self.directory)
        for name in self._served.keys() - found.keys():
            self._forget(self._served[name])
        for name, tenant in found.items():
            if name not in self._served:
                self._served[name] = Served(tenant, due_at=min(tenant.due_at(), time.time() + _spread(name)))
            served = self._served[name]
            if served.seen != states[name] or served.problem != reviewed.problems.get(name, ""):
                self._take_up(served, states[name], reviewed)

    def _take_up(self, served: Served, state: tuple[Any, ...], reviewed: Review) -> None:
        tenant = served.tenant
        problem, settings = reviewed.problems.get(tenant.name, ""), reviewed.settings.get(tenant.name)
        digest = settings.digest if settings else ""
        is_new_file = served.digest != digest
        if problem and problem != served.problem:
            self.console.say(self.console.paint(f"{tenant.name}: {problem}", "red"))
        served.seen, served.problem, served.is_suspended = state, problem, tenant.is_suspended
        served.digest = digest
        served.failures, served.restart_at = 0, 0.0
        if served.running and (is_new_file or problem or served.is_suspended):
            self._stop(served)
        port = reviewed.port(tenant.name)
        if settings and port is None:
            self._close(served)  # another tenant has it, or may come to have it
        try:
            if port is not None and (served.listening is None or served.port != port):
                self._close(served)
                served.port = port
                served.listening = bound("127.0.0.1", port)
                served.listening.listen(BACKLOG)
                served.listening.setblocking(False)
        except OSError as error:
            if str(error) != served.trouble:
                self.console.say(self.console.paint(f"{tenant.name} cannot be reached: {error}", "red"))
            served.trouble, served.seen = str(error), ()  # tried again
            return
        served.trouble = ""
        self._watch(served)

    def _forget(self, served: Served) -> None:
        self._stop(served)
        self._close(served)
        if served.running is None:
            del self._served[served.tenant.name]

    # --- connections --------------------------------------------------------------------------------------------------

    def _watch(self, served: Served) -> None:
        """Notice connections to a tenant that does not run; a running one accepts its own."""
        is_free = served.running is None and served.waiting_since is None and not self._stop_requested
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
        if served.problem or served.is_suspended or served.running is not None:
            served.waiting_since = None
            self._watch(served)
            return
        if self._runner.has_room:
            if served.restart_at <= time.monotonic():
                served.waiting_since = None
                self._start(served, self.idle_seconds)
            return
        self._runner.make_room(IN_USE_SECONDS)
        waited = time.monotonic() - served.waiting_since
        if waited > TURN_WAIT_SECONDS:
            self._runner.end_turn(TURN_SECONDS)
        if waited > ROOM_SECONDS:
            served.waiting_since = None
            self._refuse(served, errors.INSTANCE_UNAVAILABLE, int(IN_USE_SECONDS))
            self._watch(served)

    def _wake_for_work(self) -> None:
        """Start tenants whose work is due, those first that wait longest."""
        waiting = [served for served in self._served.values() if served.waits_for_work]
        for served in sorted(waiting, key=lambda each: each.due_at):
            if not self._runner.has_room:
                self._runner.make_room(process.WORK_SECONDS)
                return
            self._start(served, process.WORK_SECONDS)

    def _start(self, served: Served, idle_seconds: float) -> None:
        assert served.listening is not None
        served.due_at = time.time() + LATEST.total_seconds()
        try:
            served.running = self._runner.start(served.tenant, served.digest, served.listening, idle_seconds)
        except OSError as error:
            self._note_failure(served, f"could not be started: {error}")
        self._watch(served)

    def _let_go(self, listening: socket.socket) -> None:
        """Close what is open for other tenants: in a new process."""
        for served in self._served.values():
            if served.listening is not None and served.listening is not listening:
                served.listening.close()
        self._served.clear()
        self._refusals.close()

    def _stop(self, served: Served) -> None:
        if served.running is not None:
            self._runner.stop(served.running)

    def _note_ended(self) -> None:
        """Note which tenants have ended."""
        for served in list(self._served.values()):
            running = served.running
            if running is None or not self._runner.has_ended(running, is_impatient=self._is_impatient):
                continue
            served.running = None
            if self._runner.remove(running):
                if running.last_used is not None:
                    served.failures = 0
                self._note_failure(served, f"ended; {served.tenant.log_file} says why")
            else:
                served.failures = 0
                served.due_at = min(served.tenant.due_at(), time.time() + LATEST.total_seconds())
            if served.listening is None and not served.tenant.exists:
                del self._served[served.tenant.name]
                continue
            if served.listening is not None:
                undrain(served.listening)
            self._watch(served)

    def _note_failure(self, served: Served, what: str) -> None:
        """A tenant that has not come up twice is not started at once; one that was killed later is."""
        now = time.monotonic()
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
        served.waiting_since = None  # who waits there is not answered any more


def _spread(name: str) -> float:
    """Seconds until a tenant that never ran is started for its work: not all of them at once."""
    return (sum(name.encode()) * 7919) % 3600
