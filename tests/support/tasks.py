"""The tasks that wait in the queue, read from its broker as a worker does."""

from __future__ import annotations

from typing import Any

from django.utils.module_loading import import_string
from django_q.brokers import get_broker
from django_q.signing import SignedPackage


class Worker:
    """Takes what the test's requests leave in the queue, which is empty at first."""

    def __init__(self) -> None:
        get_broker().purge_queue()

    def take(self) -> list[tuple[Any, ...]]:
        """(function, arguments …) of each task; the queue is empty then."""
        broker, found = get_broker(), []
        while broker.queue_size():
            for task_id, packed in broker.dequeue():
                task = SignedPackage.loads(packed)
                found.append((task["func"], *task["args"]))
                broker.acknowledge(task_id)
        return found

    def work(self) -> None:
        """Do them, in order."""
        for name, *arguments in self.take():
            import_string(name)(*arguments)
