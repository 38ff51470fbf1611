"""Sends statements to PostgreSQL without Django's cursor, which interpolates parameters and parses datetimes in Python.

Parameters are sent separately from the text. The caller of a read says after how many uses its statement is prepared; a
statement of the dataset is prepared at its third use, one with many sets of parameters at its first. No statement is
prepared behind a transaction pooler. PostgreSQL keeps prepared statements and, where that costs no more, one plan for
all parameters.
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
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.datetime import TimestamptzLoader

from domain.database.bypass import Row, prepare_bypass
from domain.database.prepared_statements import Statements, Values, error_of


def fetch(
    connection: BaseDatabaseWrapper, text: str, parameters: Sequence[Any], *, prepared_after: int | None
) -> list[Row]:
    """Every row of a statement with %s placeholders. Raises Django's database errors.

    prepared_after: number of uses before the statement is prepared; None: never
    """
    driver = _driver_of(connection)
    try:
        result = driver.statements.execute(text, parameters, driver.typed, prepared_after=prepared_after)
        return driver.typed.load(result)
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.InvalidSqlStatementName):
        # A migration has changed a column's type, or a pooler has dropped the prepared statement. Inside a transaction
        # only the whole transaction can be retried.
        if not connection.in_atomic_block:
            return fetch(connection, text, parameters, prepared_after=None)
        with connection.wrap_database_errors:
            raise
    except psycopg.Error:
        with connection.wrap_database_errors:
            raise


def fetch_first(connection: BaseDatabaseWrapper, text: str) -> list[Row]:
    """Every row of a statement without parameters, sent in one message with BEGIN if possible.

    The driver would use two round trips. Raises Django's database errors.
    """
    raw: psycopg.Connection[Row] = connection.connection
    plain = raw.isolation_level is None and raw.read_only is None and raw.deferrable is None
    if raw.autocommit or not plain or raw.pgconn.transaction_status != TransactionStatus.IDLE:
        return fetch(connection, text, (), prepared_after=0)
    return _driver_of(connection).typed.load(_send(connection, f"BEGIN; {text}", ExecStatus.TUPLES_OK))


def execute(connection: BaseDatabaseWrapper, text: str) -> None:
    """Execute statements without parameters and rows in one message. Raises Django's database errors."""
    if prepare_bypass(connection):
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
            raise error_of(raw, result)
        return result


def fetch_untyped(connection: BaseDatabaseWrapper, text: str, parameters: Sequence[Any]) -> list[Row]:
    """As `fetch`, for statements of the dataset: the server infers each parameter's type from its place."""
    driver = _driver_of(connection)
    return driver.untyped.load(_run(connection, driver, text, parameters))


def change(connection: BaseDatabaseWrapper, text: str, parameters: Sequence[Any]) -> int:
    """Execute a statement with %s placeholders and return the number of changed rows."""
    return _run(connection, _driver_of(connection), text, parameters).command_tuples or 0


def change_many(connection: BaseDatabaseWrapper, text: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute a statement with %s placeholders for each set of parameters, in one round trip."""
    driver = _driver_of(connection)
    with connection.wrap_database_errors:
        driver.statements.execute_many(text, rows, driver.untyped)


def _run(connection: BaseDatabaseWrapper, driver: _Driver, text: str, parameters: Sequence[Any]) -> PGresult:
    try:
        return driver.statements.execute(text, parameters, driver.untyped, prepared_after=PREPARED_AFTER)
    except psycopg.Error:
        with connection.wrap_database_errors:
            raise


#: Number of uses before a statement of the dataset, or of a page, is prepared.
PREPARED_AFTER = 2


class _Driver:
    """The prepared statements and the type adapters of one psycopg connection.

    typed    for reads: the driver derives the types of parameters from their Python values
    untyped  for the dataset: the server infers the types
    """

    def __init__(self, raw: psycopg.Connection[Row]) -> None:
        self.statements = Statements(raw, may_prepare=not settings.DATABASE_TRANSACTION_POOLER)
        reader, writer = psycopg.Cursor(raw), psycopg.Cursor(raw)
        for cursor in (reader, writer):
            load_times_natively(cursor)
        self.typed, self.untyped = Values(reader), _Untyped(writer)


def _driver_of(connection: Any) -> _Driver:
    """The connection's _Driver, created on first use. Raises TransactionManagementError in a broken transaction."""
    if connection.needs_rollback:
        connection.validate_no_broken_transaction()
    raw = connection.connection
    # An attribute of the psycopg connection, so that it survives the connection's return to the pool.
    driver: _Driver | None = getattr(raw, "platform_driver", None)
    if driver is None:
        driver = raw.platform_driver = _Driver(raw)
    return driver


class _Untyped(Values):
    """Sends each parameter as text of unknown type.

    The driver's types depend on the values: an integer's on its size; NULL's is unknown. Each combination of types
    would be a separate prepared statement. The driver's compiled code sends texts; a dumper of ours would be called for
    each parameter.
    """

    def dump(self, parameters: Sequence[Any]) -> tuple[Sequence[Any], tuple[int, ...], Sequence[Any] | None]:
        return super().dump([str(each) if isinstance(each, _KINDS) else each for each in parameters])


_KINDS = (bool, int, float, decimal.Decimal, datetime.date, datetime.datetime, uuid.UUID)


def load_times_natively(cursor: Any) -> None:
    """Load timestamps by the driver's compiled code, in the connection's time zone (UTC); Django's is Python code."""
    cursor.adapters.register_loader("timestamptz", TimestamptzLoader)


def sqlstate(error: BaseException) -> str | None:
    """The SQLSTATE of a PostgreSQL error."""
    cause: BaseException | None = error
    while cause is not None:
        state: str | None = getattr(cause, "sqlstate", None)
        if state is not None:
            return state
        cause = cause.__cause__
    return None
