"""Begins the database transaction of a write, after reading every stamp committed before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction

from domain.database import cursor, postgresql
from foundation import stamps


@contextmanager
def write_transaction() -> Iterator[None]:
    """A database transaction for a write, or a part of the open one."""
    with transaction.atomic():
        stamps.check(_fetch)
        yield


def check_stamps() -> None:
    """Read the stamps in an open transaction."""
    stamps.check(_fetch)


def _fetch(text: str) -> list[tuple[Any, ...]]:
    connection = connections["default"]
    if connection.vendor == "postgresql" and cursor.may_bypass_cursor(connection):
        return postgresql.fetch_first(connection, text)
    return cursor.fetch(text, ())
