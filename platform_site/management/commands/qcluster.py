"""`manage.py qcluster`: the task cluster of django-q2.

It survives the sudden death of any process that it started, and none of them survives its own.
"""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import socket
import sys
import tempfile
import termios
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.queues import Queue
from types import SimpleNamespace
from typing import Any

from django_q import cluster
from django_q.management.commands.qcluster import Command as LibraryCommand

from foundation.cluster import SharedNumber
from identity.management.support import PlatformCommand
from platform_site.serving.children import die_with_parent

#: Maximum unread bytes in a queue between the processes; further tasks wait in the broker, where they are visible.
_UNREAD_BYTES = 4096
_MESSAGES = socket.SOCK_DGRAM if sys.platform == "darwin" else socket.SOCK_SEQPACKET
#: Maximum size of a datagram on macOS.
_MESSAGE_BYTES = 2048
_AGAIN_SECONDS = 0.005


class ProcessLock:
    """A reentrant lock between processes, which the system releases when its holder dies (fcntl).

    It does not exclude threads of one process: each process uses such a lock from one thread.

    The system returns EDEADLK when two processes wait for each other, even if different threads hold and wait. That is
    no deadlock here, because no thread waits for a lock while it holds another, so the wait is retried.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the lock exists)
        self._depth = 0

    def acquire(self, *args: object) -> bool:
        while not self._is_taken():
            time.sleep(_AGAIN_SECONDS)
        self._depth += 1
        return True

    def _is_taken(self) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno != errno.EDEADLK:
                raise
            return False
        return True

    def forget(self) -> None:
        """Reset the lock in a process that was forked while another thread of its parent held it."""
        self._depth = 0

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


class SurvivingQueue(Queue):  # type: ignore[type-arg]  # not generic when it runs
    """A queue between the processes of a cluster.

    In the library's queue a waiting process holds the read lock, and each queued task a semaphore. Killed processes
    would never release them, until no process could get a task. So this queue uses locks of the operating system, and
    is bounded by the unread bytes instead of a semaphore.

    On a stream a killed process could leave a partial task, which the next reader would misinterpret. So each task is a
    datagram, which the system delivers completely or not at all. A task too long for a datagram is passed as an open
    file.
    """

    def __init__(self, maxsize: int = 0) -> None:
        super().__init__(ctx=multiprocessing.get_context())
        self._rlock, self._wlock = ProcessLock(), ProcessLock()

    def _reset(self, after_fork: bool = False) -> None:
        super()._reset(after_fork)  # type: ignore[misc]
        if after_fork:
            self._rlock.forget()
            self._wlock.forget()
        else:
            self._receiver, self._sender = socket.socketpair(socket.AF_UNIX, _MESSAGES)
            self._reader, self._writer = (Connection(os.dup(end.fileno())) for end in (self._receiver, self._sender))
        self._recv_bytes, self._send_bytes, self._poll = self._receive, self._send, self._reader.poll

    def _receive(self) -> bytes:
        message, files, _, _ = socket.recv_fds(self._receiver, _MESSAGE_BYTES, 1)
        if not files:
            return message
        with open(files[0], "rb") as file:
            file.seek(0)
            return file.read()

    def _send(self, message: bytes | memoryview) -> None:
        if len(message) <= _MESSAGE_BYTES:
            self._sender.send(message)
            return
        with tempfile.TemporaryFile() as file:
            file.write(message)
            file.flush()
            socket.send_fds(self._sender, [b"in a file"], [file.fileno()])

    def put(self, *args: Any, **kwargs: Any) -> None:
        while self._unread_bytes() >= _UNREAD_BYTES:
            time.sleep(0.02)
        super().put(*args, **kwargs)

    def _unread_bytes(self) -> int:
        return int.from_bytes(fcntl.ioctl(self._receiver, termios.FIONREAD, bytes(4)), sys.byteorder)


class SurvivingEvent:
    """An event shared by the processes of a cluster, without the library's lock, which a process killed in the middle
    of a check would keep.
    """

    def __init__(self) -> None:
        self._flag = SharedNumber()

    def is_set(self) -> bool:
        return bool(self._flag.value)

    def set(self) -> None:
        self._flag.value = 1

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds; returns whether it is set."""
        deadline = time.monotonic() + timeout
        while not self.is_set() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 0.05))
        return self.is_set()


def surviving_value(kind: str, value: float) -> Any:
    """A shared value whose lock survives its holder."""
    return multiprocessing.Value(kind, value, lock=ProcessLock())  # type: ignore[call-overload]


class DependentProcess(ForkProcess):
    """A process of a cluster that ends with the one that started it.

    The library's processes would continue after a kill -9 of the cluster, waiting for tasks with open files and locks.
    """

    def run(self) -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        assert parent.pid is not None
        die_with_parent(parent.pid)
        super().run()


class Command(PlatformCommand, LibraryCommand):  # type: ignore[misc]
    """Replaces the library's command: `platform_site` precedes it in INSTALLED_APPS."""

    help = "Run the task cluster: webhooks and their retries, mail, back-channel logout, schedules."
    example = "manage.py qcluster"

    def handle(self, *args: Any, **options: Any) -> None:
        cluster.Queue, cluster.Event, cluster.Value = SurvivingQueue, SurvivingEvent, surviving_value
        cluster.get_mp_context = lambda: SimpleNamespace(Process=DependentProcess)
        super().handle(*args, **options)
