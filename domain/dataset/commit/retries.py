"""Retries a request whose write lost an optimistic-lock race.

Callers see a conflict only if they asked for the check: by If-Match, by ObjectVersion, or in a Domain transaction with
data that an earlier request read (spec 03, 3.1). Another commit between a request's read and its own commit is no such
conflict: the request that commits second starts again. On PostgreSQL its second attempt first locks the rows that both
write. On SQLite the first attempt takes the lock of the only writer before it writes, the second before it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection

from domain.database import sqlite
from domain.database.postgresql import sqlstate
from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.records.record import Record
from domain.dataset.tables.row_storage import row_storage_of
from domain.dataset.tables.write_transaction import ConflictingCommit, check_cache_versions, write_transaction
from domain.model.registry import repositories
from foundation import dry_runs, errors

T = TypeVar("T")

#: Maximum attempts. Each after the first locks one more entity that other requests are writing.
ATTEMPTS = 10
#: Maximum attempts after violations of a unique index or a reference.
VIOLATIONS = 4
#: SQLSTATE of a deadlock, of a serialization failure, of a prepared statement whose columns have got other types, and
#: of one that a pooler has dropped.
_BROKEN_OFF = frozenset({"40P01", "40001", "0A000", "26000"})
#: SQLSTATE of a unique index and a reference. Mostly an error of the caller: in a second attempt a check that reads
#: before it writes reports it, or finds the next free number, which another request may take again.
_VIOLATED = frozenset({"23505", "23503"})
#: The same on SQLite, and a lock that cannot be had because an earlier read has not ended.
_SQLITE_REPEATED = frozenset(
    {
        "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_FOREIGNKEY",
        "SQLITE_BUSY_SNAPSHOT",
    }
)  # fmt: skip


class ConcurrentUpdate(errors.VersionConflict):
    """Another commit changed the record between this request's read and its own commit."""

    def __init__(self, code: errors.ErrorCode, *parameters: object, record: Record) -> None:
        super().__init__(code, *parameters)
        # All rows that the request was about to write: locking a part of them could deadlock the next attempt.
        written = [record, *record.dataset.changed()]
        #: Parts of an entity are locked after the entity itself (conflicts.check_versions).
        self.rows = {root.key for each in written for root in each.roots if root.state != "Added"}


class RetryState:
    """State of one request's attempts: rows to lock, number of attempts.

    locks   for the datasets of the request
    """

    def __init__(self, locks: AdvisoryLocks | None = None) -> None:
        self.locks = _locks() if locks is None else locks
        #: (name of the base-most repository, guid) of the roots that two requests wrote concurrently
        self._rows: set[tuple[str, str]] = set()
        self._number = 0
        self._violations = 0
        #: whether the attempt may have read before it had SQLite's lock
        self._is_deferred = False

    @contextmanager
    def transaction(self, *, savepoint: bool = True, deferred: bool = False, begins: bool = True) -> Iterator[None]:
        """A database transaction for the attempt; see write_transaction. Only the first attempt can be deferred.

        begins   calls `begin`, too
        """
        self._is_deferred = False  # should the transaction not begin
        with write_transaction(savepoint=savepoint, deferred=deferred and self._number == 0) as self._is_deferred:
            if begins:
                self.begin()
            yield

    @contextmanager
    def locking(self) -> Iterator[None]:
        """A transaction with locks from the second attempt on; the first attempt takes none."""
        if self._number == 0:
            yield
            return
        with self.transaction():
            yield

    def begin(self) -> None:
        """At the start of the attempt's database transaction: lock the rows of earlier conflicts."""
        if self._number == 0:
            return
        self.locks.lock_again()
        for identity in sorted({identity for identity, _ in self._rows}):
            row_storage_of(repositories[identity]).lock_versions([id for name, id in self._rows if name == identity])
        # While it waited for the locks, others may have changed rows that this process has cached.
        check_cache_versions()

    def should_repeat(self, error: Exception) -> bool:
        """Whether the attempt failed because of a concurrent write. Records what the next attempt must lock."""
        self._number += 1
        if self._number == ATTEMPTS:
            return False
        if isinstance(error, ConcurrentUpdate):
            self._rows |= error.rows
            return True
        if self._is_deferred:
            return isinstance(error, ConflictingCommit) or sqlite.error_name(error) in _SQLITE_REPEATED
        state = sqlstate(error)
        if state in _VIOLATED:
            self._violations += 1
            return self._violations < VIOLATIONS
        return state in _BROKEN_OFF


def _locks() -> AdvisoryLocks:
    """The locks of a request. All requests in a dry run have the same, since they share its transaction."""
    run = dry_runs.current()
    if run is None:
        return AdvisoryLocks()
    locks: AdvisoryLocks = run.shared.setdefault(AdvisoryLocks, AdvisoryLocks())
    return locks


def run_with_retries(work: Callable[[RetryState], T], *, locks: AdvisoryLocks | None = None) -> T:
    """The result of `work`, repeated after concurrent writes. Raises the error of its last attempt.

    Each attempt has its own database transaction and dataset, and is rolled back when it fails.
    """
    retry = RetryState(locks)
    run = dry_runs.current()
    mark = run.mark() if run is not None else {}
    while True:
        try:
            return work(retry)
        except Exception as error:
            if run is not None and run.is_repeatable and sqlstate(error) in _BROKEN_OFF:
                raise dry_runs.RepeatDryRun from error
            if not retry.should_repeat(error):
                raise
            if run is not None and run.is_repeatable and connection.needs_rollback:
                raise dry_runs.RepeatDryRun from error
            if run is not None:
                run.forget(mark)
