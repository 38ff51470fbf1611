"""Statements to PostgreSQL without Django's cursor, which interpolates parameters and parses datetimes in Python.

Statements are sent with separate parameters. Reads by key, and writes from their third use on, are prepared, unless a
pooler gives each transaction another session: PostgreSQL keeps them and, where that costs no more, one plan for all.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.adapt import Dumper, Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.datetime import TimestamptzLoader

from domain.database.bypass import Row, may_bypass_cursor


def fetch(connection: BaseDatabaseWrapper, text: str, parameters: Sequence[Any], *, prepared: bool) -> list[Row]:
    """Every row of a statement with %s placeholders. Raises Django's database errors."""
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    try:
        return _read(connection, text, parameters, prepared)
    except psycopg.errors.FeatureNotSupported:
        if connection.in_atomic_block:
            # After a rollback the driver forgets prepared statements.
            with connection.wrap_database_errors:
                raise
    except psycopg.Error:
        with connection.wrap_database_errors:
            raise
    # A migration has changed the type of a column under a prepared statement. No pool takes back a closed connection.
    connection.connection.close()
    connection.close()
    connection.ensure_connection()
    return fetch(connection, text, parameters, prepared=False)


def fetch_first(connection: BaseDatabaseWrapper, text: str) -> list[Row]:
    """Every row of a statement without parameters, sent together with BEGIN if possible.

    The driver alone would wait for two responses. Raises Django's database errors.
    """
    raw: psycopg.Connection[Row] = connection.connection
    plain = raw.isolation_level is None and raw.read_only is None and raw.deferrable is None
    if raw.autocommit or not plain or raw.pgconn.transaction_status != TransactionStatus.IDLE:
        return fetch(connection, text, (), prepared=True)
    result = _send(connection, f"BEGIN; {text}", ExecStatus.TUPLES_OK)
    transformer = Transformer(raw)
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)


def execute(connection: BaseDatabaseWrapper, text: str) -> None:
    """Execute statements without parameters and rows in one message. Raises Django's database errors."""
    if may_bypass_cursor(connection):
        _send(connection, text, ExecStatus.COMMAND_OK)
        return
    with connection.cursor() as cursor:
        cursor.execute(text)


def _send(connection: BaseDatabaseWrapper, text: str, expected: ExecStatus) -> PGresult:
    """The result of the last statement of the text."""
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    raw: psycopg.Connection[Row] = connection.connection
    with connection.wrap_database_errors, raw.lock:
        result = raw.pgconn.exec_(text.encode())
        if result.status != expected:
            raise psycopg.errors.error_from_result(result, raw.info.encoding)
        return result


def fetch_untyped(connection: BaseDatabaseWrapper, text: str, parameters: Sequence[Any]) -> list[Row]:
    """As `fetch`, for statements of the dataset: the server finds each parameter's type by its place."""
    return _run(connection, text, parameters).fetchall()


def change(connection: BaseDatabaseWrapper, text: str, parameters: Sequence[Any]) -> int:
    """Execute a statement with %s placeholders; the number of rows that it changed."""
    return _run(connection, text, parameters).rowcount


def change_many(connection: BaseDatabaseWrapper, text: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute a statement with %s placeholders for each set of parameters, in one round trip."""
    with connection.wrap_database_errors:
        _writer(connection).executemany(text, rows)


def _run(connection: BaseDatabaseWrapper, text: str, parameters: Sequence[Any]) -> psycopg.Cursor[Row]:
    try:
        return _writer(connection).execute(text, parameters)
    except psycopg.Error:
        with connection.wrap_database_errors:
            raise


#: A statement of the dataset is prepared when it has been used so often.
_PREPARED_AFTER = 2


def _writer(connection: Any) -> psycopg.Cursor[Row]:
    """The connection's cursor for `fetch_untyped` and changes. Raises TransactionManagementError in a broken one."""
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    writer: psycopg.Cursor[Row] | None = getattr(connection, "_writer", None)
    if writer is None or writer.connection is not connection.connection:
        writer = connection._writer = _new_cursor(connection.connection)
        for kind in _KINDS:
            writer.adapters.register_dumper(kind, _Untyped)
    return writer


def _new_cursor(raw: psycopg.Connection[Row]) -> psycopg.Cursor[Row]:
    cursor = psycopg.Cursor(raw)
    load_times_natively(cursor)
    raw.prepare_threshold = None if settings.DATABASE_TRANSACTION_POOLER else _PREPARED_AFTER
    return cursor


class _Untyped(Dumper):
    """Sends a parameter as text of unknown type.

    The driver's types depend on the values: an integer's on its size, that of NULL is unknown. Each combination would
    be a prepared statement of its own.
    """

    def dump(self, obj: Any) -> bytes:
        return str(obj).encode()


_KINDS = (bool, int, float, decimal.Decimal, datetime.date, datetime.datetime, uuid.UUID)


def load_times_natively(cursor: Any) -> None:
    """Let the driver's own code load times, in the connection's time zone, UTC; Django's does it in Python."""
    cursor.adapters.register_loader("timestamptz", TimestamptzLoader)


def _read(connection: Any, text: str, parameters: Sequence[Any], prepared: bool) -> list[Row]:
    reader: psycopg.Cursor[Row] | None = getattr(connection, "_reader", None)
    if reader is None or reader.connection is not connection.connection:
        reader = connection._reader = _new_cursor(connection.connection)
    return reader.execute(text, parameters, prepare=prepared).fetchall()


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of a PostgreSQL error."""
    cause: BaseException | None = error
    while cause is not None:
        state: str | None = getattr(cause, "sqlstate", None)
        if state is not None:
            return state
        cause = cause.__cause__
    return None
