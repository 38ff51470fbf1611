"""Django's backend for SQLite, with another way to wait for the lock of the only writer.

SQLite waits 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50 and then 100 ms between two looks. A transaction of the platform
takes a millisecond or a few, so under load the lock was free most of the time that somebody waited for it: eight
callers who wrote used half of two cores.

A transaction holds the lock from its BEGIN on. One that first reads and computes may begin late
(`DatabaseWrapper.beginning_late`), so that others write meanwhile.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db.backends.sqlite3 import base

#: Time between two looks, while the lock may soon be free; later, a share of the time that was waited.
_SHORT_SECONDS: Final = 0.00025
_SHARE: Final = 0.05
_LONGEST_SECONDS: Final = 0.02


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to SQLite."""

    #: Whether a transaction that starts now begins late.
    _begins_late = False
    #: Whether the open transaction, which Django takes for begun, has still to begin.
    is_to_begin = False

    @contextmanager
    def beginning_late(self) -> Iterator[None]:
        """A transaction that starts in the block begins with its first statement that is no SELECT.

        Before that each of its statements sees what is committed at the time, as on PostgreSQL, and it holds no lock.
        """
        self._begins_late = True
        try:
            yield
        finally:
            self._begins_late = False

    def begin_now(self) -> None:
        """Begin the open transaction, if it has still to begin.

        Raises OperationalError after SQLite's busy_timeout.
        """
        if self.is_to_begin:
            self.is_to_begin = False
            self._wait_and_begin()

    def begin_before(self, statement: str) -> None:
        """As `begin_now`, unless the statement is a SELECT."""
        if self.is_to_begin and not statement.startswith("SELECT"):
            self.begin_now()

    def create_cursor(self, name: str | None = None) -> Any:
        """A cursor whose statements begin a late transaction."""
        cursor = self.connection.cursor(factory=_Cursor)
        cursor.wrapper = self
        return cursor

    def _start_transaction_under_autocommit(self) -> None:
        # Only the outermost transaction of the block: one that a hook starts after its commit does not.
        self.is_to_begin, self._begins_late = self._begins_late, False
        if not self.is_to_begin:
            self._wait_and_begin()

    def _wait_and_begin(self) -> None:
        """BEGIN, as soon as no other connection writes. Raises OperationalError after SQLite's busy_timeout."""
        raw = self.connection
        (most,) = raw.execute("PRAGMA busy_timeout").fetchone()
        began = time.monotonic()
        raw.execute("PRAGMA busy_timeout = 0")
        try:
            while not self._begin(last=time.monotonic() - began >= most / 1000):
                waited = time.monotonic() - began
                time.sleep(min(max(_SHORT_SECONDS, waited * _SHARE), _LONGEST_SECONDS))
        finally:
            raw.execute(f"PRAGMA busy_timeout = {most}")

    def _begin(self, *, last: bool) -> bool:
        """Whether the transaction has begun, as a writer. last: raise where the lock is not free."""
        try:
            # Without Django's cursor: it is asked thousands of times a second, by all who wait.
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            # Not SQLITE_BUSY_SNAPSHOT: who has a SELECT that has not ended, and is overtaken, would wait in vain.
            if not last and error.sqlite_errorname == "SQLITE_BUSY":
                return False
            with self.wrap_database_errors:
                raise
        return True

    def _set_autocommit(self, autocommit: bool) -> None:
        self.is_to_begin = False  # a transaction has ended
        super()._set_autocommit(autocommit)  # type: ignore[misc]  # unknown to Django's type stubs


class _Cursor(base.SQLiteCursorWrapper):
    """Django's cursor, whose statements begin a late transaction."""

    wrapper: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        """See Django's."""
        self.wrapper.begin_before(query)
        return super().execute(query, params)

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        """See Django's."""
        self.wrapper.begin_before(query)
        return super().executemany(query, param_list)
