"""Reads the rows of a table query in batches, holding only one batch in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from domain.database import postgresql, time_limit
from domain.database.bypass import Row
from domain.database.replicas import connection_for_long_read
from domain.query.run.execute import check_length
from domain.query.sql import dialects
from domain.table_api.table_query import TableQuery
from foundation.execution_slot import yield_to_requests

T = TypeVar("T")

#: Rows of a batch, which an encoder converts in some milliseconds; then waiting requests run first.
BATCH_ROWS = 250
#: Sort millions of rows in a file; no memory map, whose pages would count as the process's memory.
_SQLITE_MEMORY = ("PRAGMA temp_store=FILE", "PRAGMA mmap_size=0")


class TableRows:
    """The rows of a query, and their number, in one snapshot of the database; iterated once.

    Reads by a separate connection, which holds the snapshot; within a transaction by the thread's own connection, since
    only that sees uncommitted changes. Raises Django's database errors, and BadRequest for too long parameters.

    Another thread than the creating one may read the rows, and any thread may cancel.
    """

    def __init__(self, query: TableQuery, *, session_id: str | None = None) -> None:
        check_length(query.parameters)
        self._query = query
        self._lock = threading.Lock()  # for the two attributes below
        self._is_cancelled = False
        self._raw: Any = None  # the driver's connection while statements may run on it
        self._connection = connections["default"]
        self._is_own = not self._connection.in_atomic_block
        self._cursor: Any = None
        if self._is_own:
            self._connection = connection_for_long_read(session_id)
            self._connection.inc_thread_sharing()
        try:
            if self._is_own:
                _begin_snapshot(self._connection)
            dialects.current().prepare(self._connection)
        except BaseException:
            self._close_connection()
            raise
        self._raw = self._connection.connection

    def count(self) -> int | None:
        """The number of all matching rows, if the query asks for it."""
        if self._query.counting is None:
            return None
        text, parameters = self._query.counting
        cursor = self._raw.cursor()
        try:
            self._limited(lambda: cursor.execute(text, parameters))
            return int(cursor.fetchone()[0])
        finally:
            cursor.close()

    def __iter__(self) -> Iterator[Sequence[Row]]:
        # In the caller's transaction a server-side cursor could outlive the transaction.
        at_once = self._connection.vendor == "sqlite" or not self._is_own
        self._cursor = cursor = self._raw.cursor() if at_once else self._raw.cursor("table_rows")
        if self._connection.vendor == "postgresql":
            postgresql.load_times_natively(cursor)
        self._limited(lambda: cursor.execute(self._query.text, self._query.parameters))
        while rows := self._limited(lambda: cursor.fetchmany(BATCH_ROWS)):
            yield rows
            yield_to_requests()

    def cancel(self) -> None:
        """Cancel the running statement, and refuse further ones."""
        with self._lock:
            self._is_cancelled = True
            if self._raw is None or not self._is_own:
                return
            if self._connection.vendor == "sqlite":
                self._raw.interrupt()
            else:
                self._raw.cancel_safe()

    def close(self) -> None:
        """End the snapshot. May be called twice, while no other thread reads."""
        with self._lock:
            raw, self._raw = self._raw, None
        if raw is None:
            return
        if self._cursor is not None:
            self._cursor.close()
        self._close_connection()

    def _close_connection(self) -> None:
        if self._is_own:
            self._connection.close()

    def _limited(self, step: Callable[[], T]) -> T:
        """Run a step of the statement within the time limit of a query."""
        if self._is_cancelled:
            raise DatabaseError("the read was cancelled")
        time_limit.begin()
        try:
            with self._connection.wrap_database_errors:
                return step()
        finally:
            time_limit.end()


def _begin_snapshot(connection: BaseDatabaseWrapper) -> None:
    """Begin a transaction that reads only; closing the connection ends it."""
    connection.ensure_connection()
    raw: Any = connection.connection
    if connection.vendor == "sqlite":
        for setting in _SQLITE_MEMORY:
            raw.execute(setting)
        raw.execute("BEGIN")
    else:
        raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


__all__ = ["BATCH_ROWS", "TableRows"]
