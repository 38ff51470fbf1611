"""Runs statements on the default connection, within the current database transaction."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError, DataError, IntegrityError, OperationalError, connections

from domain.database import time_limit
from domain.database.bypass import Row, prepare_bypass
from domain.query.sql.dialect import Dialect, PlanValues
from domain.query.sql.fragments import Param, Run, Sql, run_key, run_keys, run_limit, run_skip
from foundation import errors
from foundation.execution_slot import defer_to_slot
from foundation.messages import TranslatableMessage as Message

#: Maximum of parameters: SQLite has 32,766, PostgreSQL 65,535.
MAX_PARAMETERS = 32_000
#: Maximum of characters in all parameters. A name of $compute is written out at each use: a long text, doubled in each
#: of ten names, would be a thousand times as long, and so would be the results of `concat`.
MAX_CHARACTERS = 16_000_000


class _Written(threading.local):
    """Characters of the statements that this thread has made."""

    characters = 0


written = _Written()


@dataclass(frozen=True, slots=True)
class Statement:
    """Final SQL text and the functions that compute its parameters. The text is constant, so databases can prepare it.

    values: the kind of values that the database's query plan depends on
    """

    text: str
    params: tuple[Param, ...]
    dialect: Dialect
    native: str
    values: PlanValues

    @classmethod
    def of(cls, sql: Sql, dialect: Dialect) -> Statement:
        """The statement of a finished text."""
        if len(sql.params) > MAX_PARAMETERS:
            raise errors.NotSupported(Message("more than {0} values in one query", MAX_PARAMETERS))
        written.characters += len(sql.text)
        return cls(sql.text, sql.params, dialect, dialect.native(sql.text), _plan_values(sql.params))

    def fetch(self, run: Run) -> list[Row]:
        """Every row, in the driver's form. Raises BadRequest for a query beyond the database's limits."""
        connection = connections["default"]
        self.dialect.prepare(connection)
        parameters = [param(run) for param in self.params]
        check_length(parameters)
        time_limit.begin()
        try:
            if prepare_bypass(connection):
                return self.dialect.fetch(connection, self.native, parameters, self.values)
            with connection.cursor() as cursor:
                cursor.execute(self.text, parameters)
                rows: list[Row] = cursor.fetchall()
        except DatabaseError as exc:
            error = known_error(exc)
            if error is exc:
                raise
            raise error from exc
        finally:
            time_limit.end()
            defer_to_slot()
        return rows


def check_length(parameters: Sequence[object]) -> None:
    """Raise BadRequest for parameters with more than MAX_CHARACTERS."""
    if sum(len(value) for value in parameters if isinstance(value, str)) > MAX_CHARACTERS:
        raise errors.BadRequest(
            errors.QUERY_TOO_LARGE,
            Message("names and aliases written out, it has more than {0} characters of text", MAX_CHARACTERS),
        )


def _plan_values(params: Sequence[Param]) -> PlanValues:
    if any(param in (run_key, run_keys) for param in params):
        return PlanValues.KEYS
    if params and all(param in (run_limit, run_skip) for param in params):
        return PlanValues.BOUNDS
    return PlanValues.ANY


def known_error(exc: DatabaseError) -> Exception:
    """BadRequest for a valid query that the database cannot answer; any other error unchanged."""
    if isinstance(exc, OperationalError):
        return _from_limits(exc)
    # SQLite raises IntegrityError for a LIMIT beyond 64 bits; a read violates no constraint.
    return _out_of_range(exc) if isinstance(exc, DataError | IntegrityError) else exc


def _from_limits(exc: OperationalError) -> Exception:
    """BadRequest for an operational error that reports a limit of the database; any other error unchanged."""
    if time_limit.was_exceeded(exc):
        return errors.BadRequest(errors.QUERY_TOO_LONG, time_limit.seconds())
    text = str(exc)
    if "integer overflow" in text:
        return _out_of_range(exc)
    if "tables in a join" in text:
        return errors.BadRequest(errors.QUERY_TOO_LARGE, Message("it reaches over more references than one query can"))
    if "too many columns" in text or "target lists can have at most" in text:
        return errors.BadRequest(errors.QUERY_TOO_LARGE, Message("it asks for more members than one query can give"))
    if "parser stack overflow" in text or "Expression tree is too large" in text:
        return errors.BadRequest(errors.QUERY_TOO_LARGE, Message("it is nested too deeply for the database"))
    return exc


def _out_of_range(exc: Exception) -> errors.BadRequest:
    """The error for a valid query whose arithmetic overflows for some row."""
    return errors.BadRequest(
        errors.BAD_QUERY_OPTION,
        "$filter",
        Message("a calculation goes out of range for some of the rows"),
        info=str(exc),
    )
