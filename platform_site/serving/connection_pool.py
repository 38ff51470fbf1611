"""Lends the database connections of a web process to the threads that execute requests.

Django keeps connections for each thread. The process has many threads of which one executes; with a set of connections
each they would exceed PostgreSQL's limit, and each would fill a page cache of SQLite. A thread that loses the execution
slot in the middle of a request keeps its connections until the end.

With settings.DATABASE_CONNECTIONS psycopg's own pool bounds the connections to PostgreSQL. It would make a request that
needs one wait in the middle; so each request waits for a permit before it begins, without the execution slot.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Final

from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from foundation.execution_slot import release_slot

#: Sets of connections that are kept open when no thread uses them.
MAX_FREE: Final = 4

#: A request waits this long for a permit; after that it waits for a free connection without having a permit.
PERMIT_SECONDS: Final = 10.0
#: A request that has waited for a connection this long is answered with 503. Opening one takes milliseconds.
CONNECT_SECONDS: Final = 5.0

#: Alias → open connection.
_ConnectionSet = dict[str, BaseDatabaseWrapper]


def configure_connections() -> int | None:
    """Name the connections of this process to PostgreSQL and bound them for each server, before it opens any.

    Returns how many requests may have one at once; the others are for answers of the Table API, each of which has one
    of its own. None without a bound.
    """
    if connections["default"].vendor != "postgresql":
        return None
    most: int = settings.DATABASE_CONNECTIONS // settings.WEB_PROCESSES
    for alias in ("default", *settings.DATABASE_REPLICAS):
        database: dict[str, Any] = connections.settings[alias]
        database["OPTIONS"].setdefault("application_name", "platform web")
        if most:
            database["OPTIONS"]["pool"] = {"min_size": 0, "max_size": most, "timeout": CONNECT_SECONDS}
            database["CONN_MAX_AGE"] = 0  # each request gives its connection back
    if not most:
        return None
    # One connection watches how far the primary is.
    return max(1, most - settings.TABLE_STREAMS - bool(settings.DATABASE_REPLICAS))


class ConnectionPool:
    """A context manager for all threads: inside, the thread has connections of the pool.

    most    threads that are inside at once; None without a bound
    """

    def __init__(self, most: int | None = None) -> None:
        self._free: list[_ConnectionSet] = []  # the set used last is used next
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
