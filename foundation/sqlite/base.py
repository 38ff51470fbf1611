"""Django's backend for SQLite, with shorter waits for the lock of the only writer.

SQLite waits 1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50 and then 100 ms between two attempts. A transaction of the platform
takes a few milliseconds, so under load the lock was free for most of the wait: eight concurrent writers used half of
two cores.

A transaction holds the lock from its BEGIN on. One that first reads and computes may defer it
(`DatabaseWrapper.deferring_begin`), so that others write meanwhile.
"""

from __future__ import annotations

import datetime
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db.backends.sqlite3 import base

#: Time between two attempts to get the lock: at first, and as a share of the time waited so far.
_SHORT_SECONDS: Final = 0.00025
_SHARE: Final = 0.05
#: Maximum: a connection that has waited for long must not try much more rarely than a new one.
_LONGEST_SECONDS: Final = 0.004
#: Another connection writes, or recovers the database after a crash. Not SQLITE_BUSY_SNAPSHOT: waiting does not help a
#: connection with an unfinished SELECT that began before another commit.
_BUSY: Final = frozenset({"SQLITE_BUSY", "SQLITE_BUSY_RECOVERY"})

#: Characters from which a statement counts as long, and those of long ones that a connection's cache may hold: 25,000
#: values of an `in` are 75,000 characters and take 5 MB.
_LONG_CHARACTERS: Final = 10_000
_CACHED_CHARACTERS: Final = 300_000
#: Statements that sqlite3 caches for a connection.
_CACHED_STATEMENTS: Final = 128


def _stored(moment: datetime.datetime) -> str:
    """A time as Django's DateTimeField stores it: in UTC, without offset; a naive time is taken for one in UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return moment.isoformat(" ")


# Python's own adapter would append the offset, and such a text neither equals nor orders as the same time does.
sqlite3.register_adapter(datetime.datetime, _stored)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to SQLite."""

    #: Whether a transaction that starts now defers its BEGIN.
    _defers_begin = False
    #: Whether the open transaction has not sent its BEGIN yet, although Django takes it for begun.
    begin_is_deferred = False
    #: Characters of long statements that the connection's cache may hold.
    _cached_characters = 0

    @contextmanager
    def deferring_begin(self) -> Iterator[None]:
        """A transaction that starts in the block sends BEGIN before its first statement that is no SELECT.

        A nested `atomic` is such a statement: it sends SAVEPOINT. Until BEGIN the transaction holds no lock, and each
        of its statements sees what is committed at the time, as on PostgreSQL.
        """
        self._defers_begin = True
        try:
            yield
        finally:
            self._defers_begin = False

    def begin_now(self) -> None:
        """Send the open transaction's BEGIN, if that was deferred.

        Raises OperationalError after SQLite's busy_timeout; the BEGIN remains deferred, so no later write can commit
        by itself.
        """
        if self.begin_is_deferred:
            self._wait_and_begin()
            self.begin_is_deferred = False

    def begin_before(self, statement: str) -> None:
        """As `begin_now`, unless the statement is a SELECT."""
        if self.begin_is_deferred and not statement.startswith("SELECT"):
            self.begin_now()

    def bound_cache(self, statement: str) -> None:
        """Count a statement that will run. sqlite3 caches any of them, whatever their length: 650 MB of long lists.

        No call empties its cache, but other statements displace those in it.
        """
        if len(statement) < _LONG_CHARACTERS:
            return
        self._cached_characters += len(statement)
        if self._cached_characters > _CACHED_CHARACTERS:
            self._cached_characters = len(statement)
            for number in range(_CACHED_STATEMENTS):
                self.connection.execute(f"SELECT {number}")

    def create_cursor(self, name: str | None = None) -> Any:
        """A cursor whose statements send a deferred BEGIN."""
        cursor = self.connection.cursor(factory=_Cursor)
        cursor.wrapper = self
        return cursor

    def _start_transaction_under_autocommit(self) -> None:
        # Only the outermost transaction of the block, not one that a hook starts after its commit.
        self.begin_is_deferred, self._defers_begin = self._defers_begin, False
        if not self.begin_is_deferred:
            self._wait_and_begin()

    def _wait_and_begin(self) -> None:
        """BEGIN, as soon as no other connection writes. Raises OperationalError after SQLite's busy_timeout."""
        raw = self.connection
        (timeout_milliseconds,) = raw.execute("PRAGMA busy_timeout").fetchone()
        started = time.monotonic()
        raw.execute("PRAGMA busy_timeout = 0")
        try:
            while not self._begin(is_last_attempt=time.monotonic() - started >= timeout_milliseconds / 1000):
                waited = time.monotonic() - started
                time.sleep(min(max(_SHORT_SECONDS, waited * _SHARE), _LONGEST_SECONDS))
        finally:
            raw.execute(f"PRAGMA busy_timeout = {timeout_milliseconds}")

    def _begin(self, *, is_last_attempt: bool) -> bool:
        """Try to begin as a writer; returns whether that succeeded. The last attempt raises instead of False."""
        try:
            # Without Django's cursor: waiting connections call this thousands of times a second.
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not is_last_attempt and error.sqlite_errorname in _BUSY:
                return False
            with self.wrap_database_errors:
                raise
        return True

    def _set_autocommit(self, autocommit: bool) -> None:
        self.begin_is_deferred = False  # a transaction has ended
        super()._set_autocommit(autocommit)  # type: ignore[misc]  # unknown to Django's type stubs


class _Cursor(base.SQLiteCursorWrapper):
    """Django's cursor, whose statements send a deferred BEGIN."""

    wrapper: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        """See Django's."""
        self.wrapper.begin_before(query)
        self.wrapper.bound_cache(query)
        return super().execute(query, params)

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        """See Django's."""
        self.wrapper.begin_before(query)
        return super().executemany(query, param_list)
