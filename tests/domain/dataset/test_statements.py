"""The dataset's statements on PostgreSQL, which the server prepares (domain.database.postgresql)."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, ProgrammingError, connection, transaction

from domain.database import cursor
from domain.database.prepared_statements import KEPT

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no prepared statements of a connection"),
]

INSERT = "INSERT INTO kinds (id, whole, part, truth, day, moment, size, words, content) VALUES ({})".format(
    ", ".join(["%s"] * 9)
)
GUID = UUID("01890000-0000-7000-8000-000000000001")
MOMENT = datetime.datetime(2026, 2, 28, 12, 30, 0, 250_000, tzinfo=datetime.UTC)
ROW = (GUID, 2**40, Decimal("12.50"), True, datetime.date(2026, 2, 28), MOMENT, 0.1, "it's 100 %s", '{"a": 1}')


@pytest.fixture(autouse=True)
def kinds() -> Iterator[None]:
    """A table with a column of each kind."""
    cursor.change(
        "CREATE TABLE kinds (id uuid PRIMARY KEY, whole bigint, part numeric(9,2), truth boolean, day date,"
        " moment timestamptz, size double precision, words varchar(40), content jsonb)",
        (),
    )
    yield
    cursor.change("DROP TABLE kinds", ())


def prepared() -> list[str]:
    """Those of this connection that insert into the table."""
    return [
        text for (text,) in cursor.fetch("SELECT statement FROM pg_prepared_statements", ()) if "INTO kinds" in text
    ]


def test_each_kind_of_value_comes_back() -> None:
    assert cursor.change(INSERT, ROW) == 1
    assert cursor.fetch("SELECT * FROM kinds WHERE whole = %s AND truth = %s AND part > %s", (2**40, True, 12)) == [ROW]


def test_a_statement_is_prepared_once_whatever_its_values_are() -> None:
    cursor.change_many(INSERT, [(UUID(int=number), *ROW[1:]) for number in range(3)])
    cursor.change(INSERT, (UUID(int=4), 1, *[None] * 7))
    cursor.change(INSERT, (UUID(int=5), None, Decimal(7), False, *[None] * 5))
    cursor.change_many(INSERT, [(UUID(int=number), number, *[None] * 7) for number in (6, 2**20)])
    assert len(prepared()) == 1
    assert cursor.change("UPDATE kinds SET whole = %s WHERE part IS NULL", (0,)) == 3


def test_errors_are_djangos_and_undo_all_rows_of_a_statement() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        cursor.change_many(INSERT, [ROW, ROW])
    assert cursor.fetch("SELECT count(*) FROM kinds", ()) == [(0,)]
    with transaction.atomic():
        transaction.set_rollback(True)
        for work in (cursor.change, cursor.fetch):
            with pytest.raises(transaction.TransactionManagementError):
                work("SELECT 1", ())
        with pytest.raises(transaction.TransactionManagementError):
            cursor.change_many(INSERT, [ROW])


def test_many_rows_are_undone_together_and_the_connection_is_as_before() -> None:
    rows = [(UUID(int=number), number, *[None] * 7) for number in range(1, 2501)]
    with pytest.raises(IntegrityError):
        cursor.change_many(INSERT, [*rows, rows[0]])
    with pytest.raises(IntegrityError):
        cursor.change_many(INSERT, [rows[0], *rows])
    assert cursor.fetch("SELECT count(*) FROM kinds", ()) == [(0,)]
    cursor.change_many(INSERT, [])
    cursor.change_many(INSERT, rows)
    assert cursor.fetch("SELECT count(*), sum(whole) FROM kinds", ()) == [(2500, Decimal(2500 * 2501 // 2))]


def test_a_connection_with_half_of_its_rows_sent_is_given_up() -> None:
    with pytest.raises(ProgrammingError, match="cannot adapt"):
        cursor.change_many(INSERT, [ROW, (UUID(int=2), object(), *[None] * 7)])
    assert not connection.is_usable()
    connection.close()  # as Django does after a request
    assert cursor.fetch("SELECT count(*) FROM kinds", ()) == [(0,)]


def test_statements_survive_a_rollback() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        cursor.change_many(INSERT, [ROW, ROW])
    cursor.change_many(INSERT, [ROW])
    assert len(prepared()) == 1


def test_a_statement_that_has_gone_fails_once() -> None:
    cursor.change_many(INSERT, [ROW])
    cursor.change("DEALLOCATE ALL", ())
    with pytest.raises(DatabaseError):
        cursor.change(INSERT, (UUID(int=2), *ROW[1:]))
    assert cursor.change(INSERT, (UUID(int=2), *ROW[1:])) == 1


def test_the_server_keeps_what_was_used_last() -> None:
    for number in range(KEPT + 5):
        for _ in range(3):
            assert cursor.fetch(f"SELECT {number} + %s::int", (1,)) == [(number + 1,)]
    ((kept,),) = cursor.fetch("SELECT count(*) FROM pg_prepared_statements", ())
    assert kept == KEPT


def test_a_server_that_has_gone_is_an_operational_error() -> None:
    ((own,),) = cursor.fetch("SELECT pg_backend_pid()", ())
    with other_connection() as other:
        other.execute("SELECT pg_terminate_backend(%s)", (own,))
    for _ in range(2):
        with pytest.raises(OperationalError):
            cursor.fetch("SELECT 1", ())
    connection.close()
    assert cursor.fetch("SELECT 1", ()) == [(1,)]


def test_other_threads_run_while_rows_wait_for_a_lock() -> None:
    cursor.change("SET lock_timeout = '10s'", ())
    with other_connection() as other:
        other.execute("BEGIN; LOCK TABLE kinds")
        ends = threading.Timer(0.2, other.execute, ("COMMIT",))
        ends.start()
        cursor.change_many(INSERT, [ROW])
        ends.join()
    assert cursor.fetch("SELECT count(*) FROM kinds", ()) == [(1,)]


def other_connection() -> psycopg.Connection[tuple[object, ...]]:
    """Of the same database, in autocommit mode."""
    known = connection.get_connection_params()
    names = {name: known[name] for name in ("host", "port", "user", "password", "dbname") if name in known}
    return psycopg.connect(**names, autocommit=True)
