"""Child processes: started in groups of their own, watched, started again when they die, stopped without orphans."""

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

# In-flight requests and running tasks get this long to finish; then the process group is killed.
STOP_TIMEOUT_SECONDS = 25.0

# At most a few seconds, for everybody waits for this; a start costs less than half of a core meanwhile.
RESTART_DELAY_SECONDS = (0.5, 1.0, 2.0, 5.0)
# A child that ran this long was all right; its next death counts as the first.
STEADY_SECONDS = 60.0
# Before the instance was ever ready, a child that keeps dying will not get better by itself: wrong settings, a bug.
START_ATTEMPTS = 3

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(slots=True)
class Child:
    """One program of the instance. `deaths` counts those since it last ran steadily."""

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
    """The instance did not come up; the text says why, in a sentence."""


@dataclass
class Supervisor:
    """Runs children until told to stop. One object, one use."""

    console: Console
    children: list[Child]
    _stop_requested: threading.Event = field(default_factory=threading.Event)
    _impatient: bool = False
    _ready: bool = False

    def start(self) -> None:
        """Start every child; from here on Ctrl-C, SIGTERM and a closed terminal stop the instance in order."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        # Who asks waits for the web server; what works beside it starts when that has the processor no more to itself.
        first = [child for child in self.children if child.listening is not None] or self.children
        for child in first:
            self._spawn(child)

    def wait_until(self, answers: Callable[[], bool], *, timeout_seconds: float) -> bool:
        """Wait until the instance answers; False when asked to stop meanwhile. Raises StartFailed."""
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
        """Watch until asked to stop."""
        while not self._stop_requested.wait(0.2):
            self._watch()

    def stop(self) -> None:
        """Stop every child: SIGTERM, patience, then SIGKILL for the whole group. A second Ctrl-C ends the patience."""
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
        environment, inherited = dict(child.environment), []
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
            # A session of its own: Ctrl-C in the terminal reaches the supervisor only, which stops things in order.
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
                self._bury(child, now)
            elif now >= child.restart_at:
                self._spawn(child)

    def _bury(self, child: Child, now: float) -> None:
        """Say that a child died and plan its next life."""
        assert child.process is not None
        _kill_group(child.process.pid)
        if child.listening is not None:
            # Whom nobody takes now is refused, and a proxy asks another node, until the next life begins.
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
        # The group may outlive its leader; what is left of it has nobody to obey.
        _kill_group(child.process.pid)
        child.process.wait()
        if child.listening is not None:
            child.listening.close()
        if child.reader is not None:
            child.reader.join(2)


def _kill_group(group: int) -> None:
    # Nobody left is what is wanted (macOS answers a group of zombies with EPERM).
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
    """Ask the kernel for SIGTERM when the supervisor is gone, however it went: even kill -9 leaves no orphans."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
