"""Begins a write's database transaction, with every rule, permission and definition committed before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction

from domain.database import cursor, postgresql
from foundation import stamps


@contextmanager
def write_transaction() -> Iterator[None]:
    """A database transaction for a write, or a part of the one that is open."""
    with transaction.atomic():
        stamps.check(_fetch)
        yield


def check_stamps() -> None:
    """Read the stamps in a transaction that the caller has begun."""
    stamps.check(_fetch)


def _fetch(text: str) -> list[tuple[Any, ...]]:
    connection = connections["default"]
    if connection.vendor == "postgresql" and cursor.goes_past(connection):
        return postgresql.fetch_first(connection, text)
    return cursor.fetch(text, ())
