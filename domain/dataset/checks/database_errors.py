"""Turns database errors into public errors (spec 07): a unique violation into 2129 with table, fields, value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.db import IntegrityError, OperationalError, models

from domain.database.postgresql import sqlstate
from domain.dataset.records.commit_result import CommitResult
from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from domain.model.repository import Repository
from foundation import errors
from foundation.messages import TranslatableMessage as Message

_SQLITE_COLUMNS = re.compile(r"UNIQUE constraint failed: (?P<columns>.+)")
_SQLITE_INDEX = re.compile(r"index '(?P<index>[^']+)'")
_IDENTIFIER_BYTES = 63
_CHECK = re.compile(r"(?:check constraint \"|CHECK constraint failed: )(?P<rule>[^\"\n]+)")
#: Messages of SQLite and PostgreSQL for a lock timeout.
#: The last one is the message of a pool whose connections are all in use.
_BUSY = ("locked", "busy", "deadlock", "could not serialize", "lock timeout", "couldn't get a connection")
#: SQLSTATE classes and states of a PostgreSQL server that refuses or ends connections: connection exceptions, too many
#: connections, shutdown, crash, start-up.
_UNREACHABLE = ("08", "53300", "57P01", "57P02", "57P03")
#: Messages of psycopg and libpq about a lost connection, which have no SQLSTATE. With TLS, libpq reports the end of a
#: server as an error of the encrypted connection.
_NO_CONNECTION = (
    "connection failed", "connection is closed", "server closed the connection", "connection timeout",
    "consuming input failed", "flushing failed", "no connection to the server",
    "ssl error", "ssl syscall error", "ssl connection", "could not receive data", "could not send data",
)  # fmt: skip
_UNREACHABLE_SECONDS = 5
#: SQLSTATE of PostgreSQL for a row of more than a page, or an index entry of more than a third of one.
_PROGRAM_LIMIT = "54000"
_POSTGRES = re.compile(r'unique constraint "(?P<index>[^"]+)"')


def duplicate_error(exc: IntegrityError, result: CommitResult) -> BaseException:
    """The public error for a violated constraint; the exception itself if callers cannot cause it."""
    text = str(exc)
    duplicates = list(_duplicates(text, result))
    if duplicates:
        # PostgreSQL names the value, in its own notation.
        known = [each for each in duplicates if f"({', '.join(each[2])}) already exists" in text]
        record, fields, values, name = (known or duplicates)[0]
        error = errors.Refused(
            errors.DUPLICATE_VALUE, record.repository.set_name, fields, ", ".join(values), name, target=fields
        )
        error.about = record.key
        return error
    if "CHECK" in text.upper():
        # Only the constraint's name: PostgreSQL's message has the whole row, with columns that the caller may not read.
        broken = _CHECK.search(text)
        return errors.Refused(errors.VALIDATION_FAILED, broken["rule"] if broken else "CHECK")
    if "FOREIGN KEY" in text.upper():
        return errors.Refused(errors.REFERENCE_IN_USE, Message("an entity"), text)
    return exc


def _duplicates(text: str, result: CommitResult) -> Iterator[tuple[Record, str, list[str], str]]:
    """(record, API names, values, constraint) of each record that may have violated the constraint in the text."""
    refused = [result.refused] if result.refused is not None else []
    for record in (*refused, *result.inserted, *result.updated):
        for name, columns in _unique_groups(record.repository):
            values = _values(record, columns) if _matches(text, name, columns) else None
            if values is not None:
                yield record, ", ".join(_api_name(record.repository, column) for column in columns), values, name


def key_taken(repository: Repository[Any], id: str) -> errors.Refused:
    """The public error for a key that already exists."""
    table = repository.model._meta.db_table
    return errors.Refused(
        errors.DUPLICATE_VALUE, repository.set_name, "Id", id, f"{table}_{repository.key_column}", target="Id"
    )


def _unique_groups(repository: Repository[Any]) -> list[tuple[str, tuple[str, ...]]]:
    """(constraint name, columns) of every unique constraint on the repository's tables."""
    groups: list[tuple[str, tuple[str, ...]]] = []
    for model in (repository.model, *repository.model._meta.get_parent_list()):
        meta = model._meta
        table = meta.db_table
        unique = [field.column for field in meta.local_concrete_fields if field.unique]
        groups.extend((f"{table}_{column}", (column,)) for column in unique)
        if meta.pk is not None:
            groups.append((_primary_key_index(table), (meta.pk.column,)))
        for constraint in meta.constraints:
            if isinstance(constraint, models.UniqueConstraint) and constraint.fields:
                columns = tuple(meta.get_field(name).column for name in constraint.fields)
                groups.append((constraint.name, columns))
            elif isinstance(constraint, models.UniqueConstraint):
                groups.append((constraint.name, tuple(meta.get_field(name).column for name in _named(constraint))))
    return groups


def _named(constraint: models.UniqueConstraint) -> Iterator[str]:
    """Python names of the fields in a constraint's expressions: the login, which is unique in any case."""
    parts: list[Any] = list(constraint.expressions)
    for part in (inner for expression in parts for inner in expression.flatten()):
        if isinstance(part, models.F):
            yield str(part.name)  # type: ignore[attr-defined]  # the stubs do not know it


def _primary_key_index(table: str) -> str:
    """PostgreSQL's own name, truncated to the length of identifiers. SQLite names columns instead."""
    suffix = "_pkey"
    return table[: _IDENTIFIER_BYTES - len(suffix)] + suffix


def _matches(text: str, name: str, columns: tuple[str, ...]) -> bool:
    match = _SQLITE_INDEX.search(text) or _POSTGRES.search(text)
    if match is not None:
        return match["index"] == name or match["index"].startswith(f"{name}_")
    failed = _SQLITE_COLUMNS.search(text)
    if failed is None:
        return False
    return [part.rpartition(".")[2] for part in failed["columns"].split(", ")] == list(columns)


def _values(record: Record, columns: tuple[str, ...]) -> list[str] | None:
    values: list[str] = []
    for column in columns:
        attribute = _attribute(record.repository, column)
        if attribute is None or record.values.get(attribute.name) is None:
            return None
        values.append(str(record.values[attribute.name]))
    return values


def _api_name(repository: Repository[Any], column: str) -> str:
    attribute = _attribute(repository, column)
    return column if attribute is None else attribute.name


def _attribute(repository: Repository[Any], column: str) -> Attribute | None:
    """The attribute of a column. A key has one column in each table, and may have aliases."""
    if any(column == key for _, key in repository.tables):
        return repository.attributes["Id"]
    return next((each for each in repository.attributes.values() if each.column == column), None)


def operational_error(exc: OperationalError) -> errors.PlatformError | OperationalError:
    """The public error for a busy or unreachable database or too long texts; else the exception itself."""
    if sqlstate(exc) == _PROGRAM_LIMIT:
        return errors.Refused(
            errors.VALIDATION_FAILED, Message("its texts are too long for a row or an index of the database")
        )
    text = str(exc).lower()
    if (sqlstate(exc) or "").startswith(_UNREACHABLE) or any(words in text for words in _NO_CONNECTION):
        return errors.Unavailable(
            errors.DATABASE_UNREACHABLE, _UNREACHABLE_SECONDS, retry_after_seconds=_UNREACHABLE_SECONDS
        )
    if any(word in text for word in _BUSY):
        return errors.Unavailable(errors.DATABASE_BUSY, 1, retry_after_seconds=1)
    if "full" in text or "no space" in text or "disk i/o error" in text:
        return errors.Unavailable(errors.STORAGE_FULL, str(exc), retry_after_seconds=60)
    return exc
