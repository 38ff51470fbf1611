"""How transactions wait for SQLite's lock (foundation.sqlite.base)."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection, transaction

from tests.support.measuring import assert_within

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL locks rows"),
]


@contextmanager
def another_writer() -> Iterator[sqlite3.Connection]:
    """A connection in a transaction that has written."""
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.close()


def busy_timeout() -> int:
    """Of this connection, in milliseconds."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        return int(cursor.fetchone()[0])


def wait_after_release() -> float:
    """Seconds from the moment at which another writer ends to the begin of the transaction that waits for it."""
    with another_writer() as other:
        released: list[float] = []

        def release() -> None:
            released.append(time.perf_counter())
            other.execute("ROLLBACK")

        # SQLite itself would look 128 ms after its first look, and 228 ms after it.
        timer = threading.Timer(0.14, release)
        timer.start()
        with transaction.atomic():
            begun = time.perf_counter()
        timer.join()
    return begun - released[0]


@pytest.mark.alone  # it measures time
def test_a_transaction_begins_as_soon_as_the_lock_is_free() -> None:
    assert busy_timeout() == 20_000
    assert_within(0.025, wait_after_release)
    assert busy_timeout() == 20_000


def test_it_gives_up_after_the_busy_timeout_which_stays() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 30")
    try:
        with another_writer(), pytest.raises(OperationalError, match="locked"), transaction.atomic():
            raise AssertionError("it has begun beside another writer")
        assert busy_timeout() == 30
        with transaction.atomic():
            assert busy_timeout() == 30
    finally:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 20000")
