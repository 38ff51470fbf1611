"""A request that others have overtaken is carried out again, on what they have left.

Callers hear of conflicts that they asked about: by If-Match, by ObjectVersion, or by a Domain transaction that holds
what an earlier request has read (spec 03, 3.1). What comes between one request's look and its own commit is none of
these. On SQLite nothing can, for its writers wait for each other before they look. PostgreSQL lets them run side by
side; whoever is second starts anew, and first locks what the other one was quicker at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from domain.dataset.lookups.advisory_locks import AdvisoryLocks
from domain.dataset.records.record import Record
from domain.dataset.tables.storage import storage_of
from domain.dataset.tables.write_transaction import write_transaction
from domain.model.registry import repositories
from foundation import errors

T = TypeVar("T")

#: Each attempt after the first knows, and locks, one more entity that others are writing.
ATTEMPTS = 10
#: Of these, attempts that met what a unique index or a reference forbids.
VIOLATIONS = 4
#: SQLSTATE of a deadlock, and of what a stricter isolation than ours could not serialize.
_BROKEN_OFF = frozenset({"40P01", "40001"})
#: Of a unique index and a reference. Mostly the caller's own doing: a second attempt tells it in the words of a check
#: that looks before it writes, or finds a way around (the next free number), where others may be quicker again.
_VIOLATED = frozenset({"23505", "23503"})


class ConcurrentUpdate(errors.VersionConflict):
    """Somebody else's commit came between this request's look at the record and its own commit."""

    def __init__(self, code: errors.ErrorCode, *parameters: object, record: Record) -> None:
        super().__init__(code, *parameters)
        # All that the request was about to write, and not only what it met first: with some of it locked before the
        # rest, the next attempt would wait for somebody who waits for it.
        written = [record, *record.dataset.changed()]
        #: Who writes parts of an entity begins with the entity itself (pipeline.check_versions).
        self.rows = {root.key for each in written for root in each.roots if root.state != "Added"}


class Attempt:
    """What one request has learnt in its attempts so far.

    locks   for the datasets of the request
    """

    def __init__(self, locks: AdvisoryLocks | None = None) -> None:
        self.locks = AdvisoryLocks() if locks is None else locks
        #: (name of the base-most repository, guid) of the roots that the request was about to write when others were
        self._rows: set[tuple[str, str]] = set()
        self._number = 0
        self._violations = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A database transaction for the attempt."""
        with write_transaction():
            self.begin()
            yield

    @contextmanager
    def locking(self) -> Iterator[None]:
        """For who takes no locks while nobody else is quicker: a transaction from the second attempt on."""
        if self._number == 0:
            yield
            return
        with self.transaction():
            yield

    def begin(self) -> None:
        """At the start of the attempt's database transaction: nobody shall be quicker at the same again."""
        if self._number == 0:
            return
        self.locks.lock_again()
        for identity in sorted({identity for identity, _ in self._rows}):
            storage_of(repositories[identity]).lock_versions([id for name, id in self._rows if name == identity])

    def should_repeat(self, error: Exception) -> bool:
        """Whether the attempt failed for others who were quicker. Learns from the failure."""
        self._number += 1
        if self._number == ATTEMPTS:
            return False
        if isinstance(error, ConcurrentUpdate):
            self._rows |= error.rows
            return True
        state = _sqlstate(error)
        if state in _VIOLATED:
            self._violations += 1
            return self._violations < VIOLATIONS
        return state in _BROKEN_OFF


def repeated(work: Callable[[Attempt], T], *, locks: AdvisoryLocks | None = None) -> T:
    """What `work` gives, once it is not overtaken any more. Raises what it raises.

    It begins a database transaction of its own and a dataset of its own each time, and leaves nothing when it fails.
    """
    attempt = Attempt(locks)
    while True:
        try:
            return work(attempt)
        except Exception as error:
            if not attempt.should_repeat(error):
                raise


def _sqlstate(error: BaseException) -> str | None:
    """What PostgreSQL said, if the error comes from there."""
    cause: BaseException | None = error
    while cause is not None:
        state: str | None = getattr(cause, "sqlstate", None)
        if state is not None:
            return state
        cause = cause.__cause__
    return None
