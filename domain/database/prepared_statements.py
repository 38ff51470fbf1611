"""Sends and prepares PostgreSQL statements by psycopg's libpq interface, without its cursor.

The cursor waits for the server in Python and looks up prepared statements each time: half of the processor time of a
statement that reads one row, and a fifth of a keyed read in a `$batch`.
"""

from __future__ import annotations

import re
import select
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.abc import AdaptContext
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from domain.database.bypass import Row
from foundation.short_texts import cache_short_texts

#: Maximum of prepared statements per connection; the least recently used one is dropped.
KEPT = 100
#: Maximum of unprepared statements whose uses are counted.
_COUNTED = 500
#: Maximum of characters of a statement that is prepared.
_LONGEST = 50_000
#: Number of parameter sets that are sent before the results are read.
_SENT_AT_ONCE = 1000
#: SQLSTATE: the prepared statement's result type no longer fits the tables.
_OUTDATED = "0A000"
#: SQLSTATE: DISCARD ALL or a pooler has dropped all prepared statements of the connection.
_GONE = "26000"
_DONE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
_MARK = re.compile("%[s%]")


class Values:
    """Converts parameters and results by the adapters of a psycopg cursor or connection."""

    def __init__(self, context: AdaptContext) -> None:
        self._transformer = Transformer(context)

    def dump(self, parameters: Sequence[Any]) -> tuple[Sequence[Any], tuple[int, ...], Sequence[Any] | None]:
        """(values, types, formats) for libpq; type 0 lets the server infer it."""
        if not parameters:
            return (), (), None
        values = self._transformer.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        return values, self._transformer.types or (), self._transformer.formats

    def load(self, result: PGresult) -> list[Row]:
        """Every row."""
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)


class Statements:
    """Executes and prepares the statements of one psycopg connection.

    psycopg's own prepared statements are not used, because it drops all of them after a rollback.

    may_prepare  False behind a transaction pooler
    """

    def __init__(self, raw: psycopg.Connection[Row], *, may_prepare: bool) -> None:
        self._raw = raw
        self._may_prepare = may_prepare
        #: (text, types of its parameters) → name of the prepared statement, least recently used first
        self._names: OrderedDict[tuple[str, tuple[int, ...]], bytes] = OrderedDict()
        self._uses: OrderedDict[tuple[str, tuple[int, ...]], int] = OrderedDict()
        self._made = 0

    def execute(self, text: str, parameters: Sequence[Any], values: Values, *, prepared_after: int | None) -> PGresult:
        """The result of a statement with %s placeholders. Raises psycopg.Error.

        prepared_after: number of uses before the statement is prepared; None: never
        """
        sent, types, formats = values.dump(parameters)
        connection, key = self._begun(), (text, types)
        with self._raw.lock:
            name = self._name_of(key, prepared_after)
            if name is None:
                result = connection.exec_params(_numbered(text), sent, types or None, formats)
            else:
                result = connection.exec_prepared(name, sent, formats)
        return self._checked(result, key)

    def execute_many(self, text: str, rows: Sequence[Sequence[Any]], values: Values) -> None:
        """Execute a statement without result rows for each set of parameters, by a pipeline.

        The pipeline has one round trip per _SENT_AT_ONCE sets. A failure undoes all of them. Raises psycopg.Error.
        """
        if not rows:
            return
        connection, key = self._begun(), (text, values.dump(rows[0])[1])
        failed: PGresult | None = None
        with self._raw.lock:
            name = self._name_of(key, 0)
            connection.enter_pipeline_mode()
            try:
                for start in range(0, len(rows), _SENT_AT_ONCE):
                    part = rows[start : start + _SENT_AT_ONCE]
                    for parameters in part:
                        sent, types, formats = values.dump(parameters)
                        if name is None:
                            connection.send_query_params(_numbered(text), sent, types or None, formats)
                        else:
                            connection.send_query_prepared(name, sent, formats)
                    connection.send_flush_request()
                    failed = self._first_failure(len(part))
                    if failed is not None:
                        break
                connection.pipeline_sync()
                self._next_result()
                connection.exit_pipeline_mode()
            except BaseException:
                # Close the connection: the next statement would read the unread results as its own.
                connection.finish()
                raise
        if failed is not None:
            self._checked(failed, key)

    def _begun(self) -> PGconn:
        """The libpq connection, in a transaction if psycopg's own statements would begin one."""
        connection = self._raw.pgconn
        if not self._raw.autocommit and connection.transaction_status == TransactionStatus.IDLE:
            self._raw.execute("")
        return connection

    def _first_failure(self, count: int) -> PGresult | None:
        """Read the results of `count` pipelined statements; returns the first error, if any."""
        connection, failed = self._raw.pgconn, None
        for _ in range(count):
            result = self._next_result()
            if result is None:
                raise psycopg.OperationalError(connection.get_error_message())
            self._next_result()  # None, which ends the statement's results
            if failed is None and result.status not in _DONE:
                failed = result
        return failed

    def _next_result(self) -> PGresult | None:
        """Wait for the pipeline's next result. libpq's own wait would block other threads."""
        connection = self._raw.pgconn
        unsent = connection.flush()
        while connection.is_busy():
            wanted = select.POLLIN | (select.POLLOUT if unsent else 0)
            socket = select.poll()
            socket.register(connection.socket, wanted)
            socket.poll()
            connection.consume_input()
            if unsent:
                unsent = connection.flush()
        return connection.get_result()

    def _checked(self, result: PGresult, key: tuple[str, tuple[int, ...]]) -> PGresult:
        if result.status in _DONE:
            return result
        error = error_of(self._raw, result)
        if error.sqlstate == _GONE:
            self._names.clear()
        elif error.sqlstate == _OUTDATED:
            self._names.pop(key, None)
        raise error

    def _name_of(self, key: tuple[str, tuple[int, ...]], prepared_after: int | None) -> bytes | None:
        """The name of the prepared statement, which is prepared now if due; else None."""
        name = self._names.get(key)
        if name is not None:
            self._names.move_to_end(key)
        elif prepared_after is not None and self._is_due(key, prepared_after):
            name = self._prepare(key)
        return name

    def _is_due(self, key: tuple[str, tuple[int, ...]], after: int) -> bool:
        """Whether the statement was used `after` times before; counts this use."""
        if not self._may_prepare or len(key[0]) > _LONGEST:
            return False
        used = self._uses.pop(key, 0)
        if used >= after:
            return True
        self._uses[key] = used + 1
        if len(self._uses) > _COUNTED:
            self._uses.popitem(last=False)
        return False

    def _prepare(self, key: tuple[str, tuple[int, ...]]) -> bytes:
        connection, (text, types) = self._raw.pgconn, key
        if len(self._names) >= KEPT:
            _, oldest = self._names.popitem(last=False)
            connection.exec_(b"DEALLOCATE " + oldest)
        self._made += 1
        name = b"platform_%d" % self._made
        result = connection.prepare(name, _numbered(text), types or None)
        if result.status != ExecStatus.COMMAND_OK:
            raise error_of(self._raw, result)
        self._names[key] = name
        return name


def error_of(raw: psycopg.Connection[Row], result: PGresult) -> psycopg.Error:
    """The error of a failed result; OperationalError if it has no SQLSTATE, since then the connection is lost."""
    error = psycopg.errors.error_from_result(result, raw.info.encoding)
    return psycopg.OperationalError(str(error)) if error.sqlstate is None else error


def numbers_written(text: str, numbers: Sequence[int]) -> str:
    """The text with each %s replaced by the next number; doubled percent signs stay."""
    left = iter(numbers)
    return _MARK.sub(lambda match: "%%" if match[0] == "%%" else f"{next(left):d}", text)


@cache_short_texts(1000, longest=_LONGEST)
def _numbered(text: str) -> bytes:
    """The text with $1, $2 … instead of %s, and single percent signs."""
    count = 0

    def mark(match: re.Match[str]) -> str:
        nonlocal count
        if match[0] == "%%":
            return "%"
        count += 1
        return f"${count}"

    return _MARK.sub(mark, text).encode()
