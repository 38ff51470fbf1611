"""Running a statement on the default connection's cursor, inside whatever transaction surrounds it."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import DataError, IntegrityError, OperationalError, connections

from domain.cursor import Row, goes_past
from domain.query import time_limit
from domain.query.dialects import Dialect
from domain.query.fragments import Param, Run, Sql, run_key, run_keys
from foundation import errors
from foundation.phrases import Phrase
from foundation.turns import turn

#: SQLite takes 32,766, PostgreSQL 65,535.
MAX_PARAMETERS = 32_000


@dataclass(frozen=True, slots=True)
class Statement:
    """Final SQL text and what gives its parameters. The text is constant, so that databases can keep it prepared.

    by_key: it asks for what hangs on a key or on those of a batch, so that one plan is good for all of them
    """

    text: str
    params: tuple[Param, ...]
    dialect: Dialect
    native: str
    by_key: bool

    @classmethod
    def of(cls, sql: Sql, dialect: Dialect) -> Statement:
        """The statement of a finished text."""
        if len(sql.params) > MAX_PARAMETERS:
            raise errors.NotSupported(Phrase("more than {0} values in one query", MAX_PARAMETERS))
        by_key = any(param in (run_key, run_keys) for param in sql.params)
        return cls(sql.text, sql.params, dialect, dialect.native(sql.text), by_key)

    def fetch(self, run: Run) -> list[Row]:
        """Every row, as the driver gives it. Raises BadRequest where the query asks too much of the database."""
        connection = connections["default"]
        self.dialect.prepare(connection)
        parameters = [param(run) for param in self.params]
        time_limit.begin()
        try:
            if goes_past(connection):
                return self.dialect.fetch(connection, self.native, parameters, by_key=self.by_key)
            with connection.cursor() as cursor:
                cursor.execute(self.text, parameters)
                rows: list[Row] = cursor.fetchall()
        except DataError as exc:
            raise _out_of_range(exc) from exc
        except OperationalError as exc:
            raise _from_limits(exc) from exc
        except IntegrityError as exc:
            # SQLite's word for a LIMIT beyond 64 bit; reading breaks no constraint.
            raise _out_of_range(exc) from exc
        finally:
            time_limit.end()
            turn.checkpoint(holds_locks=connection.in_atomic_block)
        return rows


def _from_limits(exc: OperationalError) -> Exception:
    """Databases report their limits as operational errors; others are not the query's."""
    if time_limit.was_exceeded(exc):
        return errors.BadRequest(errors.QUERY_TOO_LONG, settings.QUERY_SECONDS)
    text = str(exc)
    if "integer overflow" in text:
        return _out_of_range(exc)
    if "tables in a join" in text:
        return errors.BadRequest(
            errors.BAD_QUERY_OPTION, "$expand", Phrase("it reaches over more references than one query can")
        )
    if "too many columns" in text or "target lists can have at most" in text:
        return errors.BadRequest(
            errors.BAD_QUERY_OPTION, "$select", Phrase("it asks for more members than one query can give")
        )
    if "parser stack overflow" in text or "Expression tree is too large" in text:
        return errors.BadRequest(errors.BAD_QUERY_OPTION, "$filter", Phrase("it is nested too deeply for the database"))
    return exc


def _out_of_range(exc: Exception) -> errors.BadRequest:
    """The query is right, but for some row its arithmetic leaves what the database can hold."""
    return errors.BadRequest(
        errors.BAD_QUERY_OPTION,
        "$filter",
        Phrase("a calculation goes out of range for some of the rows"),
        info=str(exc),
    )
