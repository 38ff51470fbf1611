"""Lends the database connections of a web process to the threads that execute requests.

Django keeps connections per thread. A process has many threads, of which one executes; a set of connections for each
would exceed PostgreSQL's limit, or fill one page cache of SQLite per thread. A thread that loses the execution slot in
the middle of a request keeps its connections until the end.

With settings.DATABASE_CONNECTIONS psycopg's pool bounds the connections to PostgreSQL. To avoid a wait for a connection
in the middle of a request, each waits for a permit before it begins, without the execution slot.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Final

from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from foundation.execution_slot import release_slot

#: Maximum idle sets of connections that are kept open.
MAX_FREE: Final = 4

#: Maximum wait of a request for a permit; then it begins without a permit and waits for a free connection.
PERMIT_SECONDS: Final = 10.0
#: Maximum wait of a request for a connection; then it gets 503. Opening one takes milliseconds.
CONNECT_SECONDS: Final = 5.0

#: Alias → open connection.
_ConnectionSet = dict[str, BaseDatabaseWrapper]


def configure_connections() -> int | None:
    """Set application name and maximum number of this process's connections to PostgreSQL, before it opens any.

    Returns the number of requests that may have connections at once; the other connections are for streams of the Table
    API, each of which has its own. None without a bound.
    """
    if connections["default"].vendor != "postgresql":
        return None
    most: int = settings.DATABASE_CONNECTIONS // settings.WEB_PROCESSES
    for alias in ("default", *settings.DATABASE_REPLICAS):
        database: dict[str, Any] = connections.settings[alias]
        database["OPTIONS"].setdefault("application_name", "platform web")
        if most:
            database["OPTIONS"]["pool"] = {"min_size": 0, "max_size": most, "timeout": CONNECT_SECONDS}
            database["CONN_MAX_AGE"] = 0  # each request returns its connection to the pool
    if not most:
        return None
    # With replicas, one connection polls the primary's position.
    return max(1, most - settings.TABLE_STREAMS - bool(settings.DATABASE_REPLICAS))


class ConnectionPool:
    """A context manager for all threads; within it, the thread has connections of the pool.

    most    maximum threads within it at once; None without a bound
    """

    def __init__(self, most: int | None = None) -> None:
        self._free: list[_ConnectionSet] = []  # a stack: the set used last is used next
        self._thread = threading.local()
        self._permits = threading.BoundedSemaphore(most) if most is not None else None

    def __enter__(self) -> None:
        if self._permits is not None:
            self._thread.is_permitted = self._permits.acquire(blocking=False) or self._wait(self._permits)
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

    @staticmethod
    def _wait(permits: threading.BoundedSemaphore) -> bool:
        release_slot()
        return permits.acquire(timeout=PERMIT_SECONDS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._take_back()
        finally:
            if self._permits is not None and self._thread.is_permitted:
                self._permits.release()

    def _take_back(self) -> None:
        lent: _ConnectionSet = self._thread.lent
        for connection in connections.all(initialized_only=True):
            alias = connection.alias
            if alias not in lent:
                connection.inc_thread_sharing()
                lent[alias] = connection
            if connection.in_atomic_block:
                # The request left a transaction open, which no other request may continue.
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
