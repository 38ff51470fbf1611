"""How transactions wait for SQLite's lock (foundation.sqlite.base)."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from django.db import OperationalError, connection, transaction

from domain.database.cursor import change, change_many, fetch
from domain.database.sqlite import error_name, take_write_lock
from domain.database.sqlite import fetch as sqlite_fetch
from foundation.lock_waits import short_lock_wait
from foundation.sqlite.base import DatabaseWrapper
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


@pytest.fixture
def short_timeout() -> Iterator[None]:
    """A busy_timeout of 30 ms."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 30")
    yield
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 20000")


def test_it_gives_up_after_the_busy_timeout_which_stays(short_timeout: None) -> None:
    with another_writer(), pytest.raises(OperationalError, match="locked"), transaction.atomic():
        raise AssertionError("it has begun beside another writer")
    assert busy_timeout() == 30
    with transaction.atomic():
        assert busy_timeout() == 30


# --- transactions that defer BEGIN ---------------------------------------------------------------------------------


@pytest.fixture
def numbers() -> Iterator[None]:
    """A table with the number 1."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE numbers (number INTEGER)")
        cursor.execute("INSERT INTO numbers VALUES (1)")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE numbers")


@contextmanager
def deferred_transaction() -> Iterator[None]:
    """A transaction that defers its BEGIN."""
    with cast(DatabaseWrapper, connection).deferring_begin(), transaction.atomic():
        yield


def stored() -> list[int]:
    """The numbers, read by this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT number FROM numbers ORDER BY number")
        return [number for (number,) in cursor.fetchall()]


def insert(number: int) -> None:
    """Write a number by Django's cursor."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO numbers VALUES (%s)", [number])


WRITES: dict[str, Callable[[], object]] = {
    "a statement": lambda: insert(3),
    "many": lambda: connection.cursor().executemany("INSERT INTO numbers VALUES (%s)", [(3,)]),
    "the platform's": lambda: change("INSERT INTO numbers VALUES (%s)", [3]),
    "the platform's many": lambda: change_many("INSERT INTO numbers VALUES (%s)", [(3,)]),
    "with an answer": lambda: fetch("INSERT INTO numbers VALUES (%s) RETURNING number", [3]),
    "a savepoint": lambda: transaction.savepoint(),
    "a claim": take_write_lock,
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_others_write_until_a_deferred_transaction_writes(numbers: None, write: str) -> None:
    with deferred_transaction():
        with another_writer() as other:
            assert stored() == [1]
            other.execute("INSERT INTO numbers VALUES (2)")
            other.execute("COMMIT")
        assert stored() == [1, 2]
        WRITES[write]()
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sqlite3.connect(connection.settings_dict["NAME"], timeout=0).execute("INSERT INTO numbers VALUES (4)")
    assert stored()[:2] == [1, 2]


def test_a_deferred_transaction_is_undone_as_a_whole(numbers: None) -> None:
    with deferred_transaction():
        insert(2)
        transaction.set_rollback(True)
    assert stored() == [1]


def test_a_deferred_transaction_that_got_no_lock_does_not_go_on_without_one(numbers: None, short_timeout: None) -> None:
    with another_writer() as other, deferred_transaction():
        for _ in range(2):
            with pytest.raises(OperationalError, match="locked"):
                insert(2)
        with pytest.raises(OperationalError, match="locked"), transaction.atomic():
            pass
        other.execute("COMMIT")
        insert(3)
        transaction.set_rollback(True)
    assert stored() == [1]


def test_a_deferred_transaction_that_only_reads_leaves_the_connection_as_it_was(numbers: None) -> None:
    with deferred_transaction():
        assert stored() == [1]
    insert(2)
    with another_writer() as other:
        other.execute("INSERT INTO numbers VALUES (3)")
        other.execute("COMMIT")
    with another_writer(), pytest.raises(OperationalError, match="locked"), short_lock_wait():
        insert(4)
    assert stored() == [1, 2, 3]


def test_a_transaction_after_the_commit_of_a_deferred_one_begins_at_once(numbers: None) -> None:
    def after() -> None:
        with transaction.atomic():
            assert not cast(DatabaseWrapper, connection).begin_is_deferred

    with deferred_transaction():
        insert(2)
        transaction.on_commit(after)


def test_a_lock_behind_an_open_read_is_not_waited_for(numbers: None) -> None:
    insert(2)
    with deferred_transaction():
        reading = connection.connection.execute("SELECT number FROM numbers")
        assert reading.fetchone() == (1,)
        with another_writer() as other:
            other.execute("INSERT INTO numbers VALUES (3)")
            other.execute("COMMIT")
        with pytest.raises(OperationalError, match="locked") as raised:
            insert(4)
        reading.close()
    assert error_name(raised.value) == "SQLITE_BUSY_SNAPSHOT"
    assert stored() == [1, 2, 3]


@pytest.mark.parametrize("through_django", [False, True])
def test_a_connection_keeps_few_long_statements(through_django: bool) -> None:
    """Each of them has another number of values, as lists in filters do."""
    connection.ensure_connection()
    texts = [f"SELECT 1 IN ({','.join(['1'] * (6_000 + number))})" for number in range(140)]
    nobody = sys.getrefcount(texts[0])
    for text in texts:
        if through_django:
            with connection.cursor() as cursor:
                cursor.execute(text)
                assert cursor.fetchone() == (1,)
        else:
            assert sqlite_fetch(connection, text, ()) == [(1,)]
    # sqlite3's cache refers to the texts of its statements.
    kept = [len(texts[index]) for index in range(len(texts) - 1) if sys.getrefcount(texts[index]) > nobody]
    assert sum(kept) <= 300_000
