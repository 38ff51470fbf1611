"""The host's side of a worker process: start, messages, limits, kill, reap."""

from __future__ import annotations

import contextlib
import importlib.util
import mmap
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import orjson

from scripts.sandbox import protocol
from scripts.sandbox.limits import Limits

# Interval of the checks of CPU and memory limits while the worker computes.
WATCH_SECONDS: Final = 0.02
RECEIVE_BYTES: Final = 65_536
# Resident memory beyond the engine's own count above which the worker is killed.
RESIDENT_SLACK_BYTES: Final = 64_000_000
MAX_PRELUDES: Final = 8

_WORKER: Final = Path(__file__).with_name("worker.py")
_PROJECT_ROOT: Final = Path(__file__).resolve().parents[2]
_TIMEVAL: Final = struct.Struct("@ll")


class WorkerLost(Exception):
    """The worker's socket is closed: it died or was killed."""


class FrameTooLarge(Exception):
    """The worker announced a frame beyond the limit."""


class WorkerProcess:
    """A worker process, which the pool assigns to one run at a time. Not thread-safe."""

    def __init__(self, limits: Limits) -> None:
        """Start the process. Raises OSError; `wait_ready` shows whether the worker works."""
        console_size = protocol.CONSOLE_HEADER.size + limits.console_bytes
        console_fd = _anonymous_file(console_size)
        host_socket, worker_socket = socket.socketpair()
        try:
            self.console = mmap.mmap(console_fd, console_size)
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-B",
                    str(_WORKER),
                    str(_PROJECT_ROOT),
                    _engine_path(),
                    str(worker_socket.fileno()),
                    str(console_fd),
                    str(console_size),
                    str(limits.memory_bytes),
                    str(os.getpid()),
                ],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                close_fds=True,
                pass_fds=(worker_socket.fileno(), console_fd),
                # Not a new session: Linux's autogroup would give it as much processor time as the session of all web
                # processes together, whatever its priority.
                process_group=0,
            )
        except BaseException:
            host_socket.close()
            raise
        finally:
            worker_socket.close()
            os.close(console_fd)
        # Limits are checked after each receive timeout; this takes one system call, a poll would take two.
        host_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _TIMEVAL.pack(0, int(WATCH_SECONDS * 1e6)))
        host_socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(0, int(WATCH_SECONDS * 1e6)))
        self.pid = self._process.pid
        self._socket = host_socket
        self._buffer = bytearray()
        self._input = select.poll()
        self._input.register(host_socket, select.POLLIN)
        self._memory_file = _open_procfs(f"/proc/{self.pid}/statm")
        self._status_file = _open_procfs(f"/proc/{self.pid}/status")
        self._stat_file = _open_procfs(f"/proc/{self.pid}/stat")
        self.ready = False
        self.confinement: dict[str, bool] = {}
        self.first_resident_bytes = 0
        self.preludes: set[str] = set()
        self.fatal = ""
        self.runs = 0

    # -- frames ----------------------------------------------------------------------------------------------------

    def receive(self, max_bytes: int) -> tuple[bytes, bytes] | None:
        """The next frame, or None when there is none within WATCH_SECONDS."""
        header = protocol.FRAME_HEADER
        while True:
            needed = header.size
            if len(self._buffer) >= header.size:
                size, kind = header.unpack_from(self._buffer)
                if size > max_bytes:
                    raise FrameTooLarge
                needed += size
                if len(self._buffer) >= needed:
                    payload = bytes(self._buffer[header.size : needed])
                    del self._buffer[:needed]
                    return kind, payload
            try:
                chunk = self._socket.recv(max(RECEIVE_BYTES, min(needed - len(self._buffer), 1 << 20)))
            except BlockingIOError:
                return None
            except OSError as error:
                raise WorkerLost from error
            if not chunk:
                raise WorkerLost
            if not self._buffer and len(chunk) > header.size:
                # Usually one read returns exactly one frame, which needs no copy.
                size, kind = header.unpack_from(chunk)
                if len(chunk) == header.size + size <= header.size + max_bytes:
                    return kind, chunk[header.size :]
            self._buffer += chunk

    def send(self, data: bytes, deadline: float) -> bool:
        """Send all data; False if the worker does not read it before the deadline (time.monotonic)."""
        sent = 0
        while sent < len(data):
            try:
                sent += self._socket.send(memoryview(data)[sent:] if sent else data)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
            except OSError as error:
                raise WorkerLost from error
        return True

    def wait_ready(self, deadline: float) -> bool:
        """Whether the worker becomes ready before the deadline. Raises WorkerLost if it died."""
        if self.ready:
            with contextlib.suppress(BlockingIOError):
                if not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    raise WorkerLost
        while not self.ready:
            frame = self.receive(protocol.FRAME_SLACK_BYTES)
            if frame is not None:
                self._take_readiness(*frame)
            elif time.monotonic() >= deadline:
                return False
        return True

    def has_sent(self, milliseconds: int) -> bool:
        """Whether data is available within this time."""
        return bool(self._buffer or self._input.poll(milliseconds))

    def poll_ready(self) -> bool:
        """Whether the worker is ready, without waiting."""
        if not self.ready and self._socket.fileno() >= 0 and self.has_sent(0):
            with contextlib.suppress(WorkerLost, FrameTooLarge, protocol.ProtocolError):
                self.wait_ready(0)
        return self.ready

    def _take_readiness(self, kind: bytes, payload: bytes) -> None:
        if kind == protocol.FATAL:
            self.fatal = payload.decode("utf-8", "replace")
            raise WorkerLost
        if kind != protocol.READY:
            raise protocol.ProtocolError(f"unexpected frame {kind!r}")
        try:
            self.confinement = {str(name): bool(on) for name, on in orjson.loads(payload).items()}
        except (ValueError, AttributeError) as error:
            raise protocol.ProtocolError("malformed readiness") from error
        self.first_resident_bytes = self.first_resident_bytes or self.resident_bytes()
        self.ready = True

    # -- watching --------------------------------------------------------------------------------------------------

    def cpu_seconds(self) -> float:
        """Processor time used so far; 0 if unknown."""
        if sys.platform != "linux":
            return 0.0
        try:
            # The clock of another process: include/linux/posix-timers.h, MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:
            return 0.0

    def resident_bytes(self) -> int:
        """Current resident memory; 0 if unknown."""
        if self._memory_file is None:
            return 0
        try:
            return int(os.pread(self._memory_file, 200, 0).split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0

    def peak_bytes(self) -> int | None:
        """Peak resident memory; None if unknown."""
        if self._status_file is None:
            return None
        try:
            _, found, rest = os.pread(self._status_file, 4096, 0).partition(b"VmHWM:")
            return int(rest.split(None, 1)[0]) * 1024 if found else None
        except (OSError, IndexError, ValueError):
            return None

    def faulted_bytes(self) -> int:
        """Memory of all page faults so far; 0 if unknown.

        Unlike the peak it is available after the process has ended, until it is reaped.
        """
        if self._stat_file is None:
            return 0
        try:
            # proc(5): minflt is the tenth field; the second, the name in brackets, may hold anything.
            fields = os.pread(self._stat_file, 4096, 0).rpartition(b")")[2].split()
            return int(fields[7]) * resource.getpagesize()
        except (OSError, IndexError, ValueError):
            return 0

    # -- console ---------------------------------------------------------------------------------------------------

    def clear_console(self) -> None:
        protocol.CONSOLE_HEADER.pack_into(self.console, 0, 0, 0)

    def read_console(self, allowed_bytes: int) -> tuple[str, bool]:
        """The text so far and whether it was truncated. The sizes are the worker's, so they are not trusted."""
        start = protocol.CONSOLE_HEADER.size
        used, cut = protocol.CONSOLE_HEADER.unpack_from(self.console)
        used = min(used, allowed_bytes, len(self.console) - start)
        return self.console[start : start + used].decode("utf-8", "ignore"), cut != 0

    # -- the end ---------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill without waiting; call `reap` later."""
        # Not Popen.kill, which reaps a dead worker and so loses the kernel's memory counters.
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)

    def wait_ended(self) -> None:
        """Wait for the end after `kill`, without reaping: the kernel's counters stay readable."""
        if hasattr(os, "waitid"):
            with contextlib.suppress(OSError):  # already reaped
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)

    def exit_code(self, timeout_seconds: float) -> int | None:
        try:
            return self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return None

    def reap(self) -> None:
        """Kill, wait for the end, close every descriptor."""
        self.kill()
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Close only the descriptors."""
        self._socket.close()
        self.console.close()
        for file in (self._memory_file, self._status_file, self._stat_file):
            if file is not None:
                os.close(file)
        self._memory_file = self._status_file = self._stat_file = None

    def close_in_child(self) -> None:
        """In a forked child: close the copied descriptors, without killing the parent's process."""
        self.close()
        self._process.returncode = 0  # else its destructor would warn of a running child


def _engine_path() -> str:
    spec = importlib.util.find_spec("_quickjs")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the quickjs package is not installed")
    return spec.origin


def _anonymous_file(size: int) -> int:
    """A descriptor of an anonymous zeroed file, whose memory can be shared with a child."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("console", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def _open_procfs(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
