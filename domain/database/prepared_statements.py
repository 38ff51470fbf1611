"""Statements to PostgreSQL by the driver's interface to libpq, without its cursor.

The cursor waits for the server in Python and looks each time for what it has prepared: half of the processor time of a
statement that reads one row, and a fifth of a keyed read in a `$batch`.
"""

from __future__ import annotations

import functools
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

#: Statements that the server keeps for a connection; what has not been used for longest makes room.
KEPT = 100
#: Texts whose uses are counted.
_COUNTED = 500
#: Sets of parameters that are sent before the results are read.
_SENT_AT_ONCE = 1000
#: The plan does not suit the tables any more.
_OUTDATED = "0A000"
#: The statement is gone, by DISCARD ALL or a pooler, and with it all others of the connection.
_GONE = "26000"
_DONE = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
_MARK = re.compile("%[s%]")


class Values:
    """How parameters go to the server, and values come back: by the adapters of a cursor or a connection."""

    def __init__(self, context: AdaptContext) -> None:
        self._transformer = Transformer(context)

    def dump(self, parameters: Sequence[Any]) -> tuple[Sequence[Any], tuple[int, ...], Sequence[Any] | None]:
        """(values, types, formats) for libpq; the types are 0 where the server finds them."""
        if not parameters:
            return (), (), None
        values = self._transformer.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        return values, self._transformer.types or (), self._transformer.formats

    def load(self, result: PGresult) -> list[Row]:
        """Every row."""
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)


class Statements:
    """The statements of one connection of the driver, which itself prepares none: it would drop all after a rollback.

    may_prepare  False behind a pooler that gives each transaction another session
    """

    def __init__(self, raw: psycopg.Connection[Row], *, may_prepare: bool) -> None:
        self._raw = raw
        self._may_prepare = may_prepare
        #: (text, types of its parameters) → its name, oldest use first
        self._names: OrderedDict[tuple[str, tuple[int, ...]], bytes] = OrderedDict()
        self._uses: OrderedDict[tuple[str, tuple[int, ...]], int] = OrderedDict()
        self._made = 0

    def execute(self, text: str, parameters: Sequence[Any], values: Values, *, prepared_after: int | None) -> PGresult:
        """The result of a statement with %s placeholders, which is prepared after so many uses; None: never.

        Raises psycopg.Error.
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
        """Execute a statement without result rows for each set of parameters, in one round trip for many of them.

        A failure undoes all of them. Raises psycopg.Error.
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
                # Results that nobody has read would be taken for those of the next statement.
                connection.finish()
                raise
        if failed is not None:
            self._checked(failed, key)

    def _begun(self) -> PGconn:
        """The connection, in a transaction if statements of the driver would begin one."""
        connection = self._raw.pgconn
        if not self._raw.autocommit and connection.transaction_status == TransactionStatus.IDLE:
            self._raw.execute("")
        return connection

    def _first_failure(self, count: int) -> PGresult | None:
        """Read the results of so many statements of a pipeline; the first that is an error."""
        connection, failed = self._raw.pgconn, None
        for _ in range(count):
            result = self._next_result()
            if result is None:
                raise psycopg.OperationalError(connection.get_error_message())
            self._next_result()  # nothing: the end of the statement's results
            if failed is None and result.status not in _DONE:
                failed = result
        return failed

    def _next_result(self) -> PGresult | None:
        """A result of a pipeline, when it has come: the driver would keep other threads from running meanwhile."""
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
        """The statement's name, if it is prepared or it is time for it."""
        name = self._names.get(key)
        if name is not None:
            self._names.move_to_end(key)
        elif prepared_after is not None and self._is_due(key, prepared_after):
            name = self._prepare(key)
        return name

    def _is_due(self, key: tuple[str, tuple[int, ...]], after: int) -> bool:
        """Whether it has been used so often; counts this use."""
        if not self._may_prepare:
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
    """The error of a failed result; OperationalError, too, where libpq says by itself that the server has gone."""
    error = psycopg.errors.error_from_result(result, raw.info.encoding)
    return psycopg.OperationalError(str(error)) if error.sqlstate is None else error


def numbers_written(text: str, numbers: Sequence[int]) -> str:
    """The text with the numbers instead of %s; doubled percent signs stay."""
    left = iter(numbers)
    return _MARK.sub(lambda match: "%%" if match[0] == "%%" else f"{next(left):d}", text)


@functools.lru_cache(maxsize=1000)
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
