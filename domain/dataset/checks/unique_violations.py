"""From a database's failures to ours (spec 07): a unique violation to error 2129 with table, fields, value, index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.db import IntegrityError, OperationalError, models

from domain.dataset.records.record import CommitResult, Record
from domain.model.attributes import Attribute
from domain.model.repository import Repository
from foundation import errors
from foundation.phrases import Phrase

_SQLITE_COLUMNS = re.compile(r"UNIQUE constraint failed: (?P<columns>.+)")
_SQLITE_INDEX = re.compile(r"index '(?P<index>[^']+)'")
_IDENTIFIER_BYTES = 63
_CHECK = re.compile(r"(?:check constraint \"|CHECK constraint failed: )(?P<rule>[^\"\n]+)")
#: SQLite's words for a lock that does not come free, and PostgreSQL's.
_BUSY = ("locked", "busy", "deadlock", "could not serialize", "lock timeout")
_POSTGRES = re.compile(r'unique constraint "(?P<index>[^"]+)"')


def duplicate_error(exc: IntegrityError, result: CommitResult) -> BaseException:
    """The public error for a violated constraint; the exception itself where it is none that callers can cause."""
    text = str(exc)
    for record in (*result.inserted, *result.updated):
        for name, columns in _unique_groups(record.repository):
            if not _matches(text, name, columns):
                continue
            values = _values(record, columns)
            if values is None:
                continue
            fields = ", ".join(_api_name(record.repository, column) for column in columns)
            return errors.Refused(
                errors.DUPLICATE_VALUE, record.repository.set_name, fields, ", ".join(values), name, target=fields
            )
    if "CHECK" in text.upper():
        # Only the rule's name: PostgreSQL shows the whole row beside it, with columns that nobody may read.
        broken = _CHECK.search(text)
        return errors.Refused(errors.VALIDATION_FAILED, broken["rule"] if broken else "CHECK")
    if "FOREIGN KEY" in text.upper():
        return errors.Refused(errors.REFERENCE_IN_USE, Phrase("an entity"), text)
    return exc


def key_taken(repository: Repository[Any], id: str) -> errors.Refused:
    """The public error for a key that the caller gives to a second entity."""
    table = repository.model._meta.db_table
    return errors.Refused(
        errors.DUPLICATE_VALUE, repository.set_name, "Id", id, f"{table}_{repository.key_column}", target="Id"
    )


def _unique_groups(repository: Repository[Any]) -> list[tuple[str, tuple[str, ...]]]:
    """(constraint name, columns) of every unique rule on the repository's tables."""
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
    """Python names of the fields in a constraint's expressions: the login, where logins are unique in any case."""
    parts: list[Any] = list(constraint.expressions)
    for part in (inner for expression in parts for inner in expression.flatten()):
        if isinstance(part, models.F):
            yield str(part.name)  # type: ignore[attr-defined]  # the stubs do not know it


def _primary_key_index(table: str) -> str:
    """PostgreSQL's own name for it, which is cut so as to fit into an identifier. SQLite names columns instead."""
    suffix = "_pkey"
    return table[: _IDENTIFIER_BYTES - len(suffix)] + suffix


def _matches(text: str, name: str, columns: tuple[str, ...]) -> bool:
    found = _SQLITE_INDEX.search(text) or _POSTGRES.search(text)
    if found is not None:
        return found["index"] == name or found["index"].startswith(f"{name}_")
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
    """The attribute that is stored in a column. A key has one column in each table, and may have aliases."""
    if any(column == key for _, key in repository.tables):
        return repository.attributes["Id"]
    return next((each for each in repository.attributes.values() if each.column == column), None)


def operational_error(exc: OperationalError) -> errors.PlatformError | OperationalError:
    """The public error for a database that cannot just now; the exception itself where it is a bug of ours."""
    text = str(exc).lower()
    if any(word in text for word in _BUSY):
        return errors.Unavailable(errors.DATABASE_BUSY, 1, retry_after_seconds=1)
    if "full" in text or "no space" in text or "disk i/o error" in text:
        return errors.Unavailable(errors.STORAGE_FULL, str(exc), retry_after_seconds=60)
    return exc
