"""Lends the database connections of a web process to the threads that execute requests.

Django keeps connections for each thread. The process has many threads of which one executes; with a set of connections
each they would exceed PostgreSQL's limit, and each would fill a page cache of SQLite. A thread that loses the execution
slot in the middle of a request keeps its connections until the end.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

#: Sets of connections that are kept open when no thread uses them.
MAX_FREE: Final = 4

#: Alias → open connection.
_ConnectionSet = dict[str, BaseDatabaseWrapper]


class ConnectionPool:
    """A context manager for all threads: inside, the thread has connections of the pool."""

    def __init__(self) -> None:
        self._free: list[_ConnectionSet] = []  # the set used last is used next
        self._thread = threading.local()

    def __enter__(self) -> None:
        try:
            lent = self._free.pop()
        except IndexError:
            lent = {}
        if getattr(self._thread, "lent", None) is not lent:
            for connection in connections.all(initialized_only=True):
                del connections[connection.alias]
            for alias, connection in lent.items():
                connections[alias] = connection
            self._thread.lent = lent

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        lent: _ConnectionSet = self._thread.lent
        for connection in connections.all(initialized_only=True):
            alias = connection.alias
            if alias not in lent:
                connection.inc_thread_sharing()
                lent[alias] = connection
            if connection.in_atomic_block:
                # The request left a transaction open: no other request may continue it.
                connection.close()
                del connections[alias], lent[alias]
            else:
                connection.close_if_unusable_or_obsolete()
        if len(self._free) < MAX_FREE:
            self._free.append(lent)
        else:
            for connection in lent.values():
                connection.close()
            self._thread.lent = None
