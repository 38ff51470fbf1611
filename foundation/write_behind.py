"""Buffers rows about requests and writes them after the request, many in one statement.

A failed request rolls its database transaction back, and rows about it must survive that. So rows stay in the process
until the request has ended or the transaction has committed. A killed process loses the unwritten ones.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from django.core.signals import request_finished
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, connection, transaction

from foundation import dry_runs
from foundation.lock_waits import is_locked, short_lock_wait

logger = logging.getLogger("platform")

T = TypeVar("T")

#: The buffers of the process that hold rows: the end of each request may flush them.
_filled: set[WriteBehind[Any]] = set()


class WriteBehind(Generic[T]):
    """A buffer of rows; one per module and kind of row.

    name              for the log, unique
    write             writes rows, oldest first, in one database transaction
    limit             maximum number of rows: more push the oldest out
    interval_seconds  how long rows may wait for more before they are written
    merge             combines rows; called with `limit` rows, and before rows are written
    retries           rows that could not be written are written next time; else they are dropped, but for rows that
                      only wait for SQLite's lock. Rows that the database refuses for good are dropped in any case:
                      they would keep later rows from being written
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[T]], None],
        *,
        limit: int,
        interval_seconds: float = 0.0,
        merge: Callable[[Iterable[T]], list[T]] | None = None,
        retries: bool = True,
    ) -> None:
        self.interval_seconds = interval_seconds
        self._name = name
        self._write = write
        self._limit = limit
        self._merge = merge
        self._retries = retries
        self._rows: deque[T] = deque(maxlen=limit)
        self._oldest_at = 0.0  # when the oldest row came, on the clock of time.monotonic
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, rows: Iterable[T]) -> None:
        """Buffer rows until they can be written; a dry run leaves none."""
        if dry_runs.current() is not None:
            return
        with self._lock:
            if not self._rows:
                self._oldest_at = time.monotonic()
                _filled.add(self)
            self._rows.extend(rows)
            if self._merge is not None and len(self._rows) >= self._limit:
                self._rows = deque(self._merge(self._rows), maxlen=self._limit)
        if connection.in_atomic_block and self._is_due():
            # Workers and commands end no requests. Rows left by a rolled back transaction wait for the next flush.
            transaction.on_commit(self.flush_if_due, robust=True)

    def _is_due(self) -> bool:
        return bool(self._rows) and time.monotonic() - self._oldest_at >= self.interval_seconds

    def flush_if_due(self) -> None:
        """Write if the oldest row has waited long enough. Does nothing in a transaction, which may be rolled back."""
        if self._is_due() and not connection.in_atomic_block:
            with short_lock_wait():
                self.flush()

    def flush(self) -> None:
        """Write all rows now; keeps them if the database is busy."""
        with self._lock:
            taken = list(self._rows) if self._merge is None else self._merge(self._rows)
            self._empty()
        try:
            with transaction.atomic():
                self._write(taken)
        except (DatabaseError, InterfaceError) as exc:
            is_busy = is_locked(exc)
            if not is_busy:
                logger.warning("%d rows of %s could not be written", len(taken), self._name, exc_info=True)
            if is_busy or (self._retries and not isinstance(exc, (DataError, IntegrityError))):
                with self._lock:
                    self._oldest_at = time.monotonic()
                    self._rows = deque([*taken, *self._rows], maxlen=self._limit)  # the newest stay
                    _filled.add(self)

    def clear(self) -> None:
        """Drop the unwritten rows."""
        with self._lock:
            self._empty()

    def _empty(self) -> None:
        self._rows.clear()
        _filled.discard(self)


def flush_all() -> None:
    """Write the rows of all buffers now."""
    for buffer in tuple(_filled):
        buffer.flush()


def _flush_due(**_: Any) -> None:
    for buffer in tuple(_filled):
        buffer.flush_if_due()


request_finished.connect(_flush_due, dispatch_uid="write-behind")
