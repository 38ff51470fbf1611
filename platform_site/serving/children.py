"""Child processes: forked with all code loaded, watched, restarted when they exit, stopped without orphans.

The supervisor is single-threaded, so that it can fork at any time: it reads the output of the children between its
other steps.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from types import FrameType
from typing import Any

import setproctitle

from platform_site.serving.console import Console

# Time for open requests and running tasks to finish; then the process group is killed.
STOP_TIMEOUT_SECONDS = 25.0

# At most a few seconds, because all clients wait; repeated starts take less than half of a core.
RESTART_DELAY_SECONDS = (0.5, 1.0, 2.0, 5.0)
# A child that ran this long was healthy: its next exit counts as the first.
STEADY_SECONDS = 60.0
# Until the instance is ready, repeated exits of a child have a permanent cause: wrong settings, or a bug.
START_ATTEMPTS = 3

_FORK = multiprocessing.get_context("fork")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_READ_BYTES = 65536
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_M_ARENA_MAX = -8  # malloc.h


@dataclass(slots=True, eq=False)
class Child:
    """A child process that runs `main`. `deaths` counts its exits since it last ran for STEADY_SECONDS.

    waits   start it only when the instance responds
    """

    name: str
    main: Callable[[], object]
    waits: bool = False
    process: ForkProcess | None = None
    output: Output | None = None
    started_at: float = 0.0
    deaths: int = 0
    restart_at: float | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.is_alive()

    def close(self) -> None:
        """Close the supervisor's resources for the process."""
        if self.output is not None:
            self.output.close()


class Output:
    """The reading end of the pipe for the output of a child."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._line = b""
        os.set_blocking(descriptor, False)

    def fileno(self) -> int:
        """The file descriptor, for select; -1 once it is closed."""
        return self._descriptor

    def read_lines(self) -> list[str]:
        """The complete lines that have arrived. At its end the pipe is closed; the last line may be incomplete."""
        with contextlib.suppress(BlockingIOError):
            if not (read := os.read(self._descriptor, _READ_BYTES)):
                self.close()
                read = b"\n" if self._line else b""
            *complete, self._line = (self._line + read).split(b"\n")
            return [line.decode(errors="replace") for line in complete]
        return []

    def close(self) -> None:
        """Close the pipe."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class StartFailed(Exception):
    """The instance did not start; the message is a sentence for people."""


@dataclass
class Supervisor:
    """Runs children until it is stopped. Used once."""

    console: Console
    children: list[Child]
    # Not an Event: its lock in a signal handler could be held by the interrupted code.
    _stop_requested: bool = False
    _impatient: bool = False
    _ready: bool = False

    def start(self) -> None:
        """Start every child; from then on Ctrl-C, SIGTERM and a closed terminal stop the instance in order."""
        for number in _SIGNALS:
            signal.signal(number, self._on_signal)
        # The web server starts first, alone on the processor; the other children start when it responds.
        for child in self.children:
            if not child.waits or all(other.waits for other in self.children):
                self._spawn(child)

    def wait_until(self, is_responding: Callable[[], bool], *, timeout_seconds: float) -> bool:
        """Wait until the instance responds; False if stopped meanwhile. Raises StartFailed."""
        deadline = time.monotonic() + timeout_seconds
        while not self._stop_requested:
            self._watch()
            if all(child.alive for child in self.children if child.process is not None) and is_responding():
                for child in self.children:
                    if child.process is None:
                        self._spawn(child)
                self._ready = True
                return True
            if time.monotonic() > deadline:
                raise StartFailed(f"The web server did not answer within {timeout_seconds:.0f} seconds.")
            self._relay(0.05)
        return False

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Watch the children until asked to stop, or `until` is true."""
        while not self._stop_requested and not until():
            self._relay(0.2)
            self._watch()

    def stop(self) -> None:
        """Stop every child: SIGTERM, wait, then SIGKILL for the whole group. A second Ctrl-C ends the wait."""
        self._stop_requested = True
        for child in self.children:
            if child.alive and child.process is not None:
                child.process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while any(child.alive for child in self.children) and not self._impatient and time.monotonic() < deadline:
            self._relay(0.05)
        for child in self.children:
            self._end(child)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._impatient = self._stop_requested
        self._stop_requested = True

    def _spawn(self, child: Child) -> None:
        child.restart_at = None
        child.started_at = time.monotonic()
        self._read(child)
        reading, writing = os.pipe()
        others = [other for other in self.children if other is not child]
        try:
            child.process = fork(_run, child, others, reading, writing, os.getpid())
        finally:
            os.close(writing)
        child.output = Output(reading)

    def _relay(self, seconds: float) -> None:
        """Show the output of the children; wait for it up to `seconds`."""
        pipes = [child.output for child in self.children if child.output is not None and child.output.fileno() >= 0]
        if not pipes:
            time.sleep(seconds)
            return
        # A signal ends the wait only if its handler raises (PEP 475).
        for output in select.select(pipes, [], [], seconds)[0]:
            for child in self.children:
                if child.output is output:
                    self._show(child)

    def _show(self, child: Child) -> bool:
        """Show the new lines of a child's output; returns whether there were any."""
        lines = child.output.read_lines() if child.output is not None and child.output.fileno() >= 0 else []
        for line in lines:
            self.console.relay(child.name, line)
        return bool(lines)

    def _read(self, child: Child) -> None:
        """Show the remaining output of a process that has exited."""
        while self._show(child):
            pass
        if child.output is not None:
            child.output.close()

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
        child.deaths += 1
        how = _describe_exit(child.process.exitcode or 0)
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
        child.process.join()
        self._read(child)
        child.close()


def fork(main: Callable[..., object], *arguments: Any) -> ForkProcess:
    """Run `main` in a new process, which begins with `begin`; until then signals for it wait."""
    process = _FORK.Process(target=main, args=arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    return process


def _kill_group(group: int | None) -> None:
    assert group is not None
    # No process left is the desired result (macOS returns EPERM for a group of zombies).
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _describe_exit(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _run(child: Child, others: list[Child], reading: int, writing: int, supervisor: int) -> None:
    """The main function of a child process, which inherits the supervisor's memory and open files."""
    for other in others:
        other.close()
    os.close(reading)
    begin(f"platform: {child.name}", supervisor, writing)
    child.main()


def begin(title: str, supervisor: int, output: int) -> None:
    """Begin a process of `fork`: it prints into the descriptor `output`, and stops on SIGTERM or without its parent."""
    # New session, so that Ctrl-C in the terminal reaches only the supervisor, which stops the children in order.
    os.setsid()
    for number in _SIGNALS:
        if number != signal.SIGTERM:
            # Discard pending signals that the terminal sent to the supervisor's group: ignoring a signal removes it.
            signal.signal(number, signal.SIG_IGN)
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    die_with_parent(supervisor)
    if sys.platform == "linux":
        # One malloc arena, since one thread runs at a time: with glibc's one per thread, load took twice the memory.
        getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)(_M_ARENA_MAX, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, standard in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, standard)
    os.close(nothing)
    os.close(output)
    # Line-buffered, even if the supervisor's output is not.
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, errors="replace", closefd=False) for number in (1, 2))
    setproctitle.setproctitle(title)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to send SIGTERM to this process when its parent exits, even by kill -9, so that no orphans remain.

    Only Linux can; elsewhere it does nothing. Call in the child, forked by the parent's main thread, whose end counts.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(f"The process {parent} that started this one ended first.")
