"""Child processes: started in their own process groups, watched, restarted when they exit, stopped without orphans."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from platform_site.serving.console import Console
from platform_site.serving.listening import DESCRIPTOR_VARIABLE, ListeningSocket

# Open requests and running tasks have this time to finish; then the process group is killed.
STOP_TIMEOUT_SECONDS = 25.0

# At most a few seconds, because all clients wait; a start takes less than half of a core.
RESTART_DELAY_SECONDS = (0.5, 1.0, 2.0, 5.0)
# A child that ran this long was healthy; its next exit counts as the first.
STEADY_SECONDS = 60.0
# Before the instance was ever ready, a child that keeps exiting will not recover by itself: wrong settings, a bug.
START_ATTEMPTS = 3

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(slots=True)
class Child:
    """A child process. `deaths` counts its exits since it last ran for STEADY_SECONDS."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    listening: ListeningSocket | None = None
    process: subprocess.Popen[str] | None = None
    reader: threading.Thread | None = None
    started_at: float = 0.0
    deaths: int = 0
    restart_at: float | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None


class StartFailed(Exception):
    """The instance did not start; the message is a sentence for people."""


@dataclass
class Supervisor:
    """Runs children until it is stopped. Used once."""

    console: Console
    children: list[Child]
    _stop_requested: threading.Event = field(default_factory=threading.Event)
    _impatient: bool = False
    _ready: bool = False

    def start(self) -> None:
        """Start every child; from then on Ctrl-C, SIGTERM and a closed terminal stop the instance in order."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        # The web server starts first, alone on the processor; the other children start once it answers.
        first = [child for child in self.children if child.listening is not None] or self.children
        for child in first:
            self._spawn(child)

    def wait_until(self, answers: Callable[[], bool], *, timeout_seconds: float) -> bool:
        """Wait until the instance answers; False if stopped meanwhile. Raises StartFailed."""
        deadline = time.monotonic() + timeout_seconds
        while not self._stop_requested.is_set():
            self._watch()
            if all(child.alive for child in self.children if child.process is not None) and answers():
                for child in self.children:
                    if child.process is None:
                        self._spawn(child)
                self._ready = True
                return True
            if time.monotonic() > deadline:
                raise StartFailed(f"The web server did not answer within {timeout_seconds:.0f} seconds.")
            self._stop_requested.wait(0.05)
        return False

    def run(self) -> None:
        """Watch the children until asked to stop."""
        while not self._stop_requested.wait(0.2):
            self._watch()

    def stop(self) -> None:
        """Stop every child: SIGTERM, wait, then SIGKILL for the whole group. A second Ctrl-C ends the wait."""
        self._stop_requested.set()
        for child in self.children:
            if child.alive and child.listening is not None:
                child.listening.drain()
        for child in self.children:
            if child.alive and child.process is not None:
                child.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while any(child.alive for child in self.children) and not self._impatient and time.monotonic() < deadline:
            time.sleep(0.05)
        for child in self.children:
            self._end(child)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._stop_requested.is_set():
            self._impatient = True
        self._stop_requested.set()

    def _spawn(self, child: Child) -> None:
        child.restart_at = None
        child.started_at = time.monotonic()
        # One thread allocates at a time; with glibc's arena for each thread a process under load took twice the memory.
        environment, inherited = {"MALLOC_ARENA_MAX": "1", **child.environment}, []
        if child.listening is not None:
            try:
                inherited.append(child.listening.open())
            except OSError as error:
                if not self._ready:
                    raise StartFailed(f"The {child.name} process cannot listen: {error.strerror}.") from error
                child.restart_at = child.started_at + RESTART_DELAY_SECONDS[-1]
                self.console.say(
                    self.console.paint(f"The {child.name} process cannot listen yet: {error.strerror}.", "red")
                )
                return
            environment[DESCRIPTOR_VARIABLE] = str(inherited[0])
        child.process = subprocess.Popen(
            child.command,
            env=environment,
            pass_fds=inherited,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A session of its own: Ctrl-C in the terminal reaches only the supervisor, which stops the children in
            # order.
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
        child.reader = threading.Thread(target=self._relay, args=(child.name, child.process), daemon=True)
        child.reader.start()

    def _relay(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.console.relay(name, line)

    def _watch(self) -> None:
        now = time.monotonic()
        for child in self.children:
            if child.process is None:
                continue
            if child.alive:
                if child.deaths and now - child.started_at > STEADY_SECONDS:
                    child.deaths = 0
            elif child.restart_at is None:
                self._schedule_restart(child, now)
            elif now >= child.restart_at:
                self._spawn(child)

    def _schedule_restart(self, child: Child, now: float) -> None:
        """Report that a child exited and schedule its restart."""
        assert child.process is not None
        _kill_group(child.process.pid)
        if child.listening is not None:
            # Refuse connections meanwhile: a proxy then asks another node until the restart.
            child.listening.close()
        child.deaths += 1
        how = _describe_exit(child.process.returncode)
        if not self._ready and child.deaths >= START_ATTEMPTS:
            raise StartFailed(
                f"The {child.name} process {how}, {child.deaths} times while starting; its lines above say why."
            )
        delay = RESTART_DELAY_SECONDS[min(child.deaths, len(RESTART_DELAY_SECONDS)) - 1]
        child.restart_at = now + delay
        self.console.say(
            self.console.paint(f"The {child.name} process {how}; it is started again in {delay:g} s.", "red")
        )

    def _end(self, child: Child) -> None:
        if child.process is None:
            return
        if child.alive:
            self.console.say(f"The {child.name} process did not stop in time and is killed.")
        # The group may outlive its leader: kill the remaining processes.
        _kill_group(child.process.pid)
        child.process.wait()
        if child.listening is not None:
            child.listening.close()
        if child.reader is not None:
            child.reader.join(2)


def _kill_group(group: int) -> None:
    # No process left is the desired result (macOS answers a group of zombies with EPERM).
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _describe_exit(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _die_with_parent() -> None:
    """Ask the kernel for SIGTERM when the supervisor exits, even by kill -9, so that no orphans remain."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
