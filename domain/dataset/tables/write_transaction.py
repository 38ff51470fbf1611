"""Begins the database transaction of a write, after reading every stamp committed before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction

from domain.database import cursor, postgresql
from domain.database.bypass import may_bypass_cursor
from domain.model.model_version import ModelChanged, is_outdated
from foundation import dry_runs, stamps


@contextmanager
def write_transaction(*, savepoint: bool = True) -> Iterator[None]:
    """A database transaction for a write, or a part of the open one.

    savepoint: within an open transaction, a failure preserves its earlier writes. Raises ModelChanged if the definition
    of a custom entity has changed since the work began.
    """
    is_outermost = not connections["default"].in_atomic_block
    with transaction.atomic(savepoint=savepoint):
        if is_outermost or dry_runs.current() is None:  # a dry run has read them as it began
            stamps.check(_fetch)
        if is_outermost and is_outdated():
            raise ModelChanged
        yield


def check_stamps() -> None:
    """Read the stamps."""
    stamps.check(_fetch)


def _fetch(text: str) -> list[tuple[Any, ...]]:
    connection = connections["default"]
    if connection.vendor == "postgresql" and may_bypass_cursor(connection):
        return postgresql.fetch_first(connection, text)
    return cursor.fetch(text, ())
