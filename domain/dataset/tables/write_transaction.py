"""Begins the database transaction of a write, and reads the cache versions in it.

On SQLite a transaction may be deferred: it takes the lock of the only writer just before it writes, not before it
reads and computes (foundation.sqlite).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import connections, transaction

from domain.database import cursor, postgresql, sqlite
from domain.database.bypass import prepare_bypass
from domain.model.model_version import ModelChanged, is_outdated
from foundation import cache_versions, dry_runs


class ConflictingCommit(Exception):
    """Cache versions have changed since a deferred transaction started: its rules or permissions were outdated."""


class _Deferred(threading.local):
    """The cache versions at the start of this thread's deferred transaction; None without one, or once it has begun."""

    cache_versions: Mapping[str, int] | None = None


class _Open(threading.local):
    """Whether this thread has begun a transaction for a write on SQLite."""

    is_on_sqlite = False


_deferred = _Deferred()
_open = _Open()


@contextmanager
def write_transaction(*, savepoint: bool = True, deferred: bool = False) -> Iterator[bool]:
    """A database transaction for a write, or a part of the open one; yields whether it is deferred.

    savepoint   within an open transaction, a failure preserves its earlier writes
    deferred    on SQLite, it takes the lock of the only writer when it begins to write (`begin_writing`). Until then
                other transactions write, as on PostgreSQL; the caller retries after conflicts (commit.retries)
    Raises ModelChanged if the definition of a custom entity has changed since the work began.
    """
    connection: Any = connections["default"]
    is_outermost = not connection.in_atomic_block
    is_deferred = deferred and is_outermost and connection.vendor == "sqlite"
    with connection.deferring_begin() if is_deferred else nullcontext(), transaction.atomic(savepoint=savepoint):
        if is_outermost or dry_runs.current() is None:  # a dry run has read the versions at its start
            check_cache_versions()
        if is_outermost and is_outdated():
            raise ModelChanged
        if is_outermost:
            _open.is_on_sqlite = connection.vendor == "sqlite"
            _deferred.cache_versions = cache_versions.values() if is_deferred else None
        try:
            yield is_deferred
        finally:
            if is_outermost:  # before the on_commit hooks, which begin transactions of their own
                _open.is_on_sqlite, _deferred.cache_versions = False, None


def holds_write_lock() -> bool:
    """Whether this thread blocks all other writers: in a `write_transaction` on SQLite that has begun."""
    connection: Any = connections["default"]
    return _open.is_on_sqlite and not connection.begin_is_deferred


def begin_writing() -> bool:
    """Begin a deferred transaction. Call before the last checks of a write, and before work without a version check.

    Returns whether a deferred transaction has begun by this call, so that what was read before may have changed. Always
    False on PostgreSQL. Raises ConflictingCommit, and OperationalError while another connection holds the lock for
    too long.
    """
    if _deferred.cache_versions is None:
        return False
    sqlite.take_write_lock()
    check_cache_versions()
    if cache_versions.values() is not _deferred.cache_versions:
        raise ConflictingCommit
    _deferred.cache_versions = None
    return True


def check_cache_versions() -> None:
    """Read the cache versions."""
    cache_versions.check(_fetch)


def _fetch(text: str) -> list[tuple[Any, ...]]:
    connection = connections["default"]
    if connection.vendor == "postgresql" and prepare_bypass(connection):
        return postgresql.fetch_first(connection, text)
    return cursor.fetch(text, ())
