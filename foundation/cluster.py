"""The task cluster (django-q2): tasks every few seconds, and whether the cluster of this process is stopping.

django-q2 checks its schedules every 30 seconds. Its pusher process polls the broker continuously: when the queue is
empty, this broker adds the tasks that are due every few seconds.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import util
from typing import Any, TypeVar
from weakref import WeakSet

from django.utils.module_loading import import_string
from django_q.conf import Conf
from django_q.tasks import async_task

from foundation import dry_runs

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Repeated:
    """A function by its dotted path, the seconds between its tasks, and the timeout of a task."""

    path: str
    seconds: Callable[[], float]
    timeout_seconds: int


_repeated: list[_Repeated] = []


class SharedNumber:
    """A number that the processes of a cluster share.

    Create it while a module is imported: the processes are forked from one process after that.
    """

    def __init__(self) -> None:
        self.renew()
        _shared_numbers.add(self)

    def renew(self) -> None:
        """Reset it to 0, and share it only with processes that are forked from now on."""
        self._number = ctypes.c_double.from_buffer(mmap.mmap(-1, ctypes.sizeof(ctypes.c_double)))

    @property
    def value(self) -> float:
        """The current number."""
        return self._number.value

    @value.setter
    def value(self, value: float) -> None:
        self._number.value = value


_shared_numbers: WeakSet[SharedNumber] = WeakSet()


def renew_shared_numbers() -> None:
    """Stop sharing numbers with the parent process and its other children."""
    for number in list(_shared_numbers):
        number.renew()


_stopping = SharedNumber()


def every(seconds: Callable[[], float], *, timeout_seconds: int) -> Callable[[F], F]:
    """Decorator: the cluster runs the function at this interval. AppConfig.ready imports the function's module."""

    def register(task: F) -> F:
        _repeated.append(_Repeated(f"{task.__module__}.{task.__qualname__}", seconds, timeout_seconds))
        return task

    return register


def cluster_is_stopping() -> bool:
    """Whether the cluster of this worker process starts no more tasks, because it stops."""
    return bool(_stopping.value)


#: The library of Redis is large, and imported only where it is used.
_Broker: Any = import_string("foundation.task_stream.TaskStream" if Conf.REDIS else "django_q.brokers.orm.ORM")


class ClusterBroker(_Broker):  # type: ignore[misc]
    """The queue in Redis or in the database, with the tasks of `every`. Only the pusher of a cluster takes tasks."""

    _due_at: list[float] | None = None

    def enqueue(self, task: Any) -> Any:
        """Enqueue a task; that of a dry run is dropped."""
        return super().enqueue(task) if dry_runs.current() is None else None

    def dequeue(self) -> Any:
        if self._due_at is None:
            self._due_at = [0.0] * len(_repeated)
            _stopping.value = 0
            util.Finalize(None, setattr, (_stopping, "value", 1), exitpriority=100)  # the pusher ends first
        tasks = super().dequeue()
        now = time.monotonic()
        for position, task in enumerate(() if tasks else _repeated):
            if self._due_at[position] <= now:
                self._due_at[position] = now + task.seconds()
                async_task(task.path, broker=self, save=False, ack_failure=True, timeout=task.timeout_seconds)
        return tasks
