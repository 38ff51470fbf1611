"""`manage.py qcluster`: the task cluster of django-q2, with queues that survive the death of any worker process."""

from __future__ import annotations

import fcntl
import tempfile
from typing import Any

from django_q import cluster
from django_q.management.commands.qcluster import Command as LibraryCommand
from django_q.queues import Queue


class ProcessLock:
    """A lock that the system releases when its holder dies (fcntl, per process); threads of a process share it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the lock exists)

    def acquire(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


class SurvivingQueue(Queue):  # type: ignore[misc]
    """A queue between the processes of a cluster.

    A process that waits for a task holds the lock for reading. If it is killed, the library's semaphore stays taken, and
    no process gets a task any more.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rlock, self._wlock = ProcessLock(), ProcessLock()


class Command(LibraryCommand):  # type: ignore[misc]
    """The library's command; `platform_site` stands before it among the apps."""

    def handle(self, *args: Any, **options: Any) -> None:
        cluster.Queue = SurvivingQueue
        super().handle(*args, **options)
