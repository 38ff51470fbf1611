"""Database connections go with the turn: who works has them, whoever waits for their turn needs none.

Django keeps connections by thread. A process has many threads of which one works, and each would hold connections of
its own for ever: hundreds on PostgreSQL, which allows a hundred, and as many cold page caches on SQLite. So a thread
gets the process's connections for its turn and leaves them behind. One that gives its turn away in the middle
(`foundation.turns.waiting`), or loses it, keeps what it has, for its work goes on; the next one then gets others.
"""

from __future__ import annotations

import threading
from types import TracebackType

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

#: Of those that nobody uses. Many are used at once only while many requests wait in the middle of their work.
KEPT = 4

#: Alias → open connection.
_Lent = dict[str, BaseDatabaseWrapper]


class LentConnections:
    """The connections of a process that nobody uses at this moment. Enter with the turn."""

    def __init__(self) -> None:
        # What was used last is used first: what is one too many rests.
        self._free: list[_Lent] = []
        self._here = threading.local()

    def __enter__(self) -> None:
        """Give this thread connections; Django opens those that are missing."""
        lent = self._free.pop() if self._free else {}
        # Django finds a thread's connections slowly; mostly they are those that it had at its last turn.
        if getattr(self._here, "lent", None) is not lent:
            for alias in connections:
                if alias in lent:
                    connections[alias] = lent[alias]
                elif hasattr(connections._connections, alias):  # type: ignore[attr-defined]
                    del connections[alias]
            self._here.lent = lent

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take this thread's connections for the next one, which is not to inherit one that failed or grew old."""
        lent: _Lent = self._here.lent
        for alias in connections:
            connection = lent.get(alias)
            if connection is None:
                if not hasattr(connections._connections, alias):  # type: ignore[attr-defined]
                    continue
                connection = lent[alias] = connections[alias]
                connection.inc_thread_sharing()
            if connection.in_atomic_block:
                # The request broke off where it should not have been able to; nobody should inherit its transaction.
                connection.close()
                del connections[alias], lent[alias]
            else:
                connection.close_if_unusable_or_obsolete()
        if len(self._free) < KEPT:
            self._free.append(lent)
            return
        for alias, connection in lent.items():
            connection.close()
            del connections[alias]
