"""Distributes kept-alive connections evenly over the web processes.

The kernel assigns a new connection to a random process. A process with more connections in use than its share responds
with `Connection: close` on some, and their clients connect again: half of them to another process. So eight connections
to two processes are four and four within a second or two.
"""

from __future__ import annotations

import mmap
import time
from typing import Final

#: A connection counts as in use for this time after its last request.
IN_USE_SECONDS: Final = 2.0
#: Older counts are ignored: their process has ended or is restarting.
FRESH_SECONDS: Final = 2.0
#: A process closes connections when it has more than this times the mean.
TOLERATED: Final = 1.05
_FIELDS: Final = 2  # of each process: time, connections in use


class SharedCounts:
    """Connections in use of each web process, in shared memory. Create it before the processes are forked."""

    def __init__(self, processes: int) -> None:
        self._fields = memoryview(mmap.mmap(-1, 8 * _FIELDS * processes)).cast("d")

    def write(self, process: int, count: int) -> None:
        """Set the count of a process; processes are numbered from 0."""
        self._fields[process * _FIELDS + 1] = count
        self._fields[process * _FIELDS] = time.monotonic()

    def read(self) -> list[float]:
        """The counts of the running processes."""
        since = time.monotonic() - FRESH_SECONDS
        fields = self._fields.tolist()
        return [count for at, count in zip(fields[::_FIELDS], fields[1::_FIELDS], strict=True) if at >= since]


class ConnectionBalance:
    """The connections of one web process."""

    def __init__(self, counts: SharedCounts, process: int) -> None:
        self._counts = counts
        self._process = process
        self._last_used: dict[str, float] = {}  # address and port of the client → time
        self._surplus = 0

    def use(self, client: str) -> None:
        """Record a request on the connection."""
        self._last_used[client] = time.monotonic()

    def closes(self, client: str) -> bool:
        """Record a response on the connection; returns whether to close the connection after it."""
        if self._surplus <= 0:
            self._last_used[client] = time.monotonic()
            return False
        self._surplus -= 1
        self._last_used.pop(client, None)
        return True

    def compare(self, in_progress: int) -> None:
        """Publish the number of connections in use, and compute how many to close.

        in_progress: number of requests that wait or run; their connections count as in use for as long as that takes.
        """
        since = time.monotonic() - IN_USE_SECONDS
        for client, last in list(self._last_used.items()):
            if last < since:
                self._last_used.pop(client, None)
        count = max(len(self._last_used), in_progress)
        self._counts.write(self._process, count)
        counts = self._counts.read()
        mean = sum(counts) / len(counts)
        self._surplus = int(count - mean) if count > mean * TOLERATED else 0
