"""Begins the database transaction of a write, after reading every stamp committed before."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import connections, transaction

from domain.database import cursor, postgresql, sqlite
from domain.database.bypass import may_bypass_cursor
from domain.model.model_version import ModelChanged, is_outdated
from foundation import dry_runs, stamps


class Overtaken(Exception):
    """Stamps have changed since a late transaction started: the work used former rules or permissions."""


class _Late(threading.local):
    """The stamps with which the late transaction of this thread started; None without one."""

    stamps: Mapping[str, int] | None = None


_late = _Late()


@contextmanager
def write_transaction(*, savepoint: bool = True, late: bool = False) -> Iterator[None]:
    """A database transaction for a write, or a part of the open one.

    savepoint   within an open transaction, a failure preserves its earlier writes
    late        on SQLite, it waits for the lock of the only writer only before it writes (`begin_writing`). Until then
                others write, as on PostgreSQL; the caller repeats the work where that matters (commit.retries)
    Raises ModelChanged if the definition of a custom entity has changed since the work began.
    """
    connection: Any = connections["default"]
    is_outermost = not connection.in_atomic_block
    is_late = late and is_outermost and connection.vendor == "sqlite"
    with connection.beginning_late() if is_late else nullcontext(), transaction.atomic(savepoint=savepoint):
        if is_outermost or dry_runs.current() is None:  # a dry run has read them as it began
            check_stamps()
        if is_outermost and is_outdated():
            raise ModelChanged
        if not is_late:
            yield
            return
        _late.stamps = stamps.values()
        try:
            yield
        finally:
            _late.stamps = None  # before hooks of the commit, which write by themselves


def begin_writing() -> bool:
    """Call before the last checks of a write, and before work that no version guards.

    Whether others may have written since the transaction started: a late one begins now. False on PostgreSQL.
    Raises Overtaken, and OperationalError while another holds the lock for too long.
    """
    if _late.stamps is None:
        return False
    before, _late.stamps = _late.stamps, None
    sqlite.take_write_lock()
    check_stamps()
    if stamps.values() is not before:
        raise Overtaken
    return True


def check_stamps() -> None:
    """Read the stamps."""
    stamps.check(_fetch)


def _fetch(text: str) -> list[tuple[Any, ...]]:
    connection = connections["default"]
    if connection.vendor == "postgresql" and may_bypass_cursor(connection):
        return postgresql.fetch_first(connection, text)
    return cursor.fetch(text, ())
