"""The queue of the task cluster in Redis, from which a task is deleted only when it is done.

The library's queue in Redis is a list: a task that is handed out is forgotten, whatever becomes of it. A stream with a
consumer group remembers what was handed out until it is acknowledged, as the library's queue in a database does, so a
task that fails, or whose process is killed, is handed out again after Q_CLUSTER's `retry`.

The commands exist since Redis 5.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from django_q.brokers.redis_broker import Redis
from django_q.conf import Conf
from redis.exceptions import ResponseError

#: All clusters are one consumer: each entry is handed out once, to whoever asks first.
_GROUP = "clusters"
#: Maximum wait for a task.
_BLOCK_MILLISECONDS = 1000
#: Interval of looks for tasks to hand out again, and their number at a time.
_LOOK_SECONDS = 5.0
_LOOK_COUNT = 100


class TaskStream(Redis):  # type: ignore[misc]  # without types
    """A broker of django-q2."""

    _looks_at = 0.0

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self.list_key += ":stream"  # the library's list has the name without it

    def enqueue(self, task: str) -> bytes:
        """Add a task; returns its id."""
        added: bytes = self.connection.xadd(self.list_key, {"task": task})
        return added

    def dequeue(self) -> list[tuple[bytes, bytes]]:
        """Hand out a new task, or those that were handed out too long ago: (id, task). Empty after a second."""
        try:
            entries = self._overdue() or self._new()
        except ResponseError as error:
            # The stream is deleted, perhaps while this process waited, or has not been read yet.
            if not str(error).startswith(("NOGROUP", "UNBLOCKED")):
                raise
            with suppress(ResponseError):  # another cluster has just done it
                self.connection.xgroup_create(self.list_key, _GROUP, id="0", mkstream=True)
            entries = self._new()
        return [(entry, fields[b"task"]) for entry, fields in entries]

    def _new(self) -> list[Any]:
        streams = {self.list_key: ">"}
        read = self.connection.xreadgroup(_GROUP, _GROUP, streams, count=1, block=_BLOCK_MILLISECONDS)
        return list(read[0][1]) if read else []

    def _overdue(self) -> list[Any]:
        if time.monotonic() < self._looks_at:
            return []
        self._looks_at = time.monotonic() + _LOOK_SECONDS
        milliseconds = Conf.RETRY * 1000
        handed_out = self.connection.xpending_range(self.list_key, _GROUP, "-", "+", _LOOK_COUNT)
        overdue = [each["message_id"] for each in handed_out if each["time_since_delivered"] >= milliseconds]
        # Of two clusters that ask at once, only one gets an entry: for the other it has just been handed out.
        return list(self.connection.xclaim(self.list_key, _GROUP, _GROUP, milliseconds, overdue)) if overdue else []

    def acknowledge(self, task_id: bytes) -> None:
        """Delete a task that is done."""
        with self.connection.pipeline() as pipeline:
            pipeline.xack(self.list_key, _GROUP, task_id)
            pipeline.xdel(self.list_key, task_id)
            pipeline.execute()

    delete = fail = acknowledge

    def queue_size(self) -> int:
        """The number of tasks that are not handed out."""
        return max(0, int(self.connection.xlen(self.list_key)) - self.lock_size())

    def lock_size(self) -> int:
        """The number of tasks that are handed out and not done."""
        try:
            return int(self.connection.xpending(self.list_key, _GROUP)["pending"])
        except ResponseError:  # no task has been handed out yet
            return 0

    def purge_queue(self) -> int:
        """Delete all tasks."""
        return int(self.connection.delete(self.list_key))

    delete_queue = purge_queue
