"""SQL statements that load, insert, update and delete rows of a repository. Only the dataset calls this.

Statements are built once per (repository, database vendor) and cached until the registry changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
from django.db import connection

from domain.database import sqlite
from domain.database.cursor import change, change_many, fetch
from domain.model.attributes import Attribute
from domain.model.registry import derived, repositories
from domain.model.repository import Repository
from domain.model.values import Convert, from_storage, to_storage
from foundation.batches import batched
from foundation.kinds import Kind

#: Keys in one IN list; below the parameter limits of SQLite and PostgreSQL.
CHUNK = 500


@dataclass(frozen=True, slots=True)
class Row:
    """One stored entity: API name → canonical value, its version, its custom values by code."""

    values: dict[str, Any]
    version: int
    custom: dict[str, Any]


#: Kinds whose columns SQLite's driver would convert by their declared types, slower than our readers.
_CONVERTED_BY_DRIVER = frozenset({Kind.BOOL, Kind.DATE, Kind.DATETIME})


_GUIDS = frozenset({Kind.GUID, Kind.REFERENCE})


@dataclass(frozen=True, slots=True)
class _Column:
    attribute: Attribute
    table: str
    column: str
    read: Convert | None
    write: Convert | None


def quote(name: str) -> str:
    """A quoted identifier. Both databases quote alike, and model names contain no quotation marks."""
    return f'"{name}"'


#: A row in the driver's form → API name → canonical value
_Reader = Callable[[Sequence[Any]], dict[str, Any]]
#: API name → canonical value, to parameters
_Writer = Callable[[Mapping[str, Any]], list[Any]]


def _values_reader(columns: Sequence[_Column]) -> _Reader:
    """Build a converter of rows to canonical values: one generated expression for all columns is twice as fast."""
    converts: dict[str, Any] = {f"read{index}": column.read for index, column in enumerate(columns)}
    values = ", ".join(
        f"{column.attribute.name!r}: " + (f"row[{index}]" if column.read is None else _unless_null(index))
        for index, column in enumerate(columns)
    )
    result: _Reader = eval(f"lambda row: {{{values}}}", converts)  # noqa: S307  (names are the model's)
    return result


def _unless_null(index: int) -> str:
    return f"None if row[{index}] is None else read{index}(row[{index}])"


def _parameters_writer(columns: Sequence[_Column]) -> _Writer:
    """The inverse, for the columns of an INSERT after the key."""
    converts: dict[str, Any] = {f"write{index}": column.write for index, column in enumerate(columns)}
    parameters = "".join(
        f", get({column.attribute.name!r})"
        if column.write is None
        else f", None if (value := get({column.attribute.name!r})) is None else write{index}(value)"
        for index, column in enumerate(columns)
    )
    source = f"lambda values, get: [values['Id']{parameters}]"
    result: Callable[[Mapping[str, Any], Any], list[Any]] = eval(source, converts)  # noqa: S307  (names are the model's)
    return lambda values: result(values, values.get)


def _reader_dependent(repository: Repository[Any]) -> tuple[str, ...]:
    """API names of attributes that only the read engine computes, because they depend on the reader's rights."""
    return () if repository.describes is None else repository.describes.values


class RowStorage:
    """Statements of one repository on the current database."""

    def __init__(self, repository: Repository[Any]) -> None:
        self.repository = repository
        vendor = connection.vendor
        self.columns = [
            _Column(
                attribute,
                attribute.table,
                attribute.column,
                None if attribute.kind in _GUIDS else from_storage(attribute, vendor),
                to_storage(attribute, vendor),
            )
            for attribute in repository.attributes.values()
            if attribute.field is not None
            and not attribute.key_alias
            and attribute.name not in _reader_dependent(repository)
        ]
        self.base_table, self.base_key = repository.tables[0]
        self._select = self._build_select(vendor)
        self._values = _values_reader(self.columns)
        self._inserts = [self._build_insert(table, key) for table, key in repository.tables]
        self._finds: dict[tuple[Any, ...], str] = {}

    def _build_select(self, vendor: str) -> str:
        names = [f"{quote(column.table)}.{quote(column.column)}" for column in self.columns]
        if vendor == "sqlite":
            # A unary plus makes it an expression without a declared type.
            kinds = (column.attribute.kind for column in self.columns)
            names = [f"+{n}" if kind in _CONVERTED_BY_DRIVER else n for n, kind in zip(names, kinds, strict=True)]
        else:
            # The driver would make UUID objects, to be made texts again.
            kinds = (column.attribute.kind for column in self.columns)
            names = [f"{n}::text" if kind in _GUIDS else n for n, kind in zip(names, kinds, strict=True)]
        names.append(f"{quote(self.base_table)}.{quote('custom_property_values')}")
        joins = "".join(
            f" JOIN {quote(table)} ON {quote(table)}.{quote(key)} = {quote(self.base_table)}.{quote(self.base_key)}"
            for table, key in self.repository.tables[1:]
        )
        return f"SELECT {', '.join(names)} FROM {quote(self.base_table)}{joins} WHERE "

    # --- reading --------------------------------------------------------------------------------------------------

    def load(self, ids: Sequence[str]) -> dict[str, Row]:
        """Rows by guid, without missing ones."""
        result: dict[str, Row] = {}
        key = f"{quote(self.base_table)}.{quote(self.base_key)}"
        for part in batched(ids, CHUNK):
            marks = ", ".join(["%s"] * len(part))
            result.update(self.load_where(f"{key} IN ({marks})", part))
        return result

    def load_where(self, condition: str, parameters: Sequence[Any]) -> dict[str, Row]:
        """Rows by guid that satisfy a SQL condition over columns of the repository's tables."""
        result: dict[str, Row] = {}
        for raw in fetch(f"{self._select}{condition}", parameters):
            row = self._row(raw)
            result[row.values["Id"]] = row
        return result

    def _row(self, raw: Sequence[Any]) -> Row:
        values = self._values(raw)
        custom = orjson.loads(raw[-1]) if raw[-1] else {}
        return Row(values, values["ObjectVersion"], custom)

    def concrete_names(self, ids: Sequence[str]) -> dict[str, str]:
        """Guid → concrete repository's name, for polymorphic repositories."""
        result: dict[str, str] = {}
        for part in batched(ids, CHUNK):
            marks = ", ".join(["%s"] * len(part))
            statement = (
                f"SELECT {quote(self.base_key)}, {quote('concrete_repository')} FROM {quote(self.base_table)} "
                f"WHERE {quote(self.base_key)} IN ({marks})"
            )
            result.update((str(key), name) for key, name in fetch(statement, part))
        return result

    def existing(self, ids: Sequence[str]) -> set[str]:
        """The stored ones among the guids."""
        return {id for _, id in existing([(self.repository, id) for id in ids])}

    def find(self, values: Mapping[str, Any], limit: int | None) -> dict[str, Row]:
        """Rows with these values (API name → canonical) by guid, in order of creation."""
        condition, parameters = self._condition(values, limit)
        return self.load_where(condition, parameters)

    def find_ids(self, values: Mapping[str, Any], limit: int | None) -> list[str]:
        """As `find`, the guids alone."""
        condition, parameters = self._condition(values, limit)
        _, _, joined = self._select.partition(" FROM ")
        key = f"{quote(self.base_table)}.{quote(self.base_key)}"
        return [str(id) for (id,) in fetch(f"SELECT {key} FROM {joined}{condition}", parameters)]

    def _condition(self, values: Mapping[str, Any], limit: int | None) -> tuple[str, list[Any]]:
        """The SQL after WHERE, and its parameters."""
        shape = (*((name, value is None) for name, value in values.items()), limit is None)
        columns = {column.attribute.name: column for column in self.columns}
        condition = self._finds.get(shape)
        if condition is None:
            tests = [
                f"{quote(columns[name].table)}.{quote(columns[name].column)} {'IS NULL' if value is None else '= %s'}"
                for name, value in values.items()
            ]
            key = f"{quote(self.base_table)}.{quote(self.base_key)}"
            condition = f"{' AND '.join(tests) or 'TRUE'} ORDER BY {key}{'' if limit is None else ' LIMIT %s'}"
            self._finds[shape] = condition
        parameters = [self._write(columns[name], value) for name, value in values.items() if value is not None]
        return condition, parameters if limit is None else [*parameters, limit]

    def children(self, back_reference: Attribute, parents: Sequence[str]) -> dict[str, Row]:
        """Rows by guid that refer to one of the parents, in order of creation."""
        result: dict[str, Row] = {}
        column = f"{quote(back_reference.table)}.{quote(back_reference.column)}"
        key = f"{quote(self.base_table)}.{quote(self.base_key)}"
        for part in batched(parents, CHUNK):
            marks = ", ".join(["%s"] * len(part))
            result.update(self.load_where(f"{column} IN ({marks}) ORDER BY {key}", part))
        return result

    # --- writing --------------------------------------------------------------------------------------------------

    def insert(self, rows: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        """Insert (values, custom) pairs: one statement per table for all of them, base tables first."""
        for index, (statement, parameters_of) in enumerate(self._inserts):
            parameters = [parameters_of(values) for values, _ in rows]
            if index == 0:
                for row, (_, custom) in zip(parameters, rows, strict=True):
                    row.append(orjson.dumps(custom).decode() if custom else None)
                    if self.repository.is_polymorphic:
                        row.append(self.repository.name)
            if len(parameters) == 1:
                change(statement, parameters[0])
            else:
                change_many(statement, parameters)

    def _build_insert(self, table: str, key: str) -> tuple[str, _Writer]:
        """The statement, and the function that computes its parameters for the key and the table's attributes."""
        columns = [column for column in self.columns if column.table == table and column.attribute.name != "Id"]
        names = [key, *(column.column for column in columns)]
        if table == self.base_table:
            names.append("custom_property_values")
            if self.repository.is_polymorphic:
                names.append("concrete_repository")
        marks = ", ".join(["%s"] * len(names))
        statement = f"INSERT INTO {quote(table)} ({', '.join(quote(name) for name in names)}) VALUES ({marks})"
        return statement, _parameters_writer(columns)

    @staticmethod
    def _write(column: _Column, value: Any) -> Any:
        return value if value is None or column.write is None else column.write(value)

    def update(self, id: str, changes: dict[str, Any], custom: dict[str, Any] | None, version: int | None) -> bool:
        """Write changed attributes and increment the version; False if the stored version is not `version`.

        `changes` maps API names → canonical values; `custom` has all custom values, or None if unchanged; `version`
        None overwrites any version (autoflush, whose writes are rolled back).
        """
        by_table: dict[str, list[tuple[str, Any]]] = {}
        for column in self.columns:
            if column.attribute.name in changes and column.attribute.name != "ObjectVersion":
                by_table.setdefault(column.table, []).append(
                    (column.column, self._write(column, changes[column.attribute.name]))
                )
        base = by_table.pop(self.base_table, [])
        if custom is not None:
            base.append(("custom_property_values", orjson.dumps(custom).decode() if custom else None))
        assignments = "".join(f"{quote(name)} = %s, " for name, _ in base)
        # The base row has the version, so this statement also detects a concurrent update.
        check = "" if version is None else f" AND {quote('object_version')} = %s"
        updated = change(
            f"UPDATE {quote(self.base_table)} SET {assignments}{quote('object_version')} = "
            f"{quote('object_version')} + 1 WHERE {quote(self.base_key)} = %s{check}",
            [*(value for _, value in base), id, *([] if version is None else [version])],
        )
        if updated != 1:
            return False
        for table, key in self.repository.tables[1:]:
            if pairs := by_table.get(table):
                assignments = ", ".join(f"{quote(name)} = %s" for name, _ in pairs)
                change(
                    f"UPDATE {quote(table)} SET {assignments} WHERE {quote(key)} = %s",
                    [*(value for _, value in pairs), id],
                )
        return True

    def lock_versions(self, ids: Sequence[str]) -> dict[str, int]:
        """Guid → stored ObjectVersion of existing rows, locked until the transaction ends."""
        sqlite.take_write_lock()
        result: dict[str, int] = {}
        key = quote(self.base_key)
        # NO KEY UPDATE: references to the rows stay possible. The order is the same for all transactions.
        lock = f" ORDER BY {key} FOR NO KEY UPDATE" if connection.features.has_select_for_update else ""
        for part in batched(sorted(ids), CHUNK):
            marks = ", ".join(["%s"] * len(part))
            statement = (
                f"SELECT {key}, {quote('object_version')} FROM {quote(self.base_table)} WHERE {key} IN ({marks}){lock}"
            )
            result.update((str(id), version) for id, version in fetch(statement, part))
        return result

    def version(self, id: str) -> int | None:
        """The stored ObjectVersion; None for a missing row."""
        rows = fetch(
            f"SELECT {quote('object_version')} FROM {quote(self.base_table)} WHERE {quote(self.base_key)} = %s", [id]
        )
        return rows[0][0] if rows else None

    def delete(self, ids: Sequence[str]) -> None:
        """Delete rows, own table first."""
        for part in batched(ids, CHUNK):
            marks = ", ".join(["%s"] * len(part))
            for table, key in reversed(self.repository.tables):
                change(f"DELETE FROM {quote(table)} WHERE {quote(key)} IN ({marks})", part)


def insert_raw(table: str, columns: tuple[str, ...], rows: Sequence[Sequence[Any]], ending: str = "") -> None:
    """Insert rows in the driver's form into a table of few columns, by as few statements as possible.

    ending   what follows the rows, such as ON CONFLICT
    """
    for part in batched(rows, CHUNK):
        change(_insert_of(table, columns, len(part), ending), [value for row in part for value in row])


@lru_cache(maxsize=64)
def _insert_of(table: str, columns: tuple[str, ...], rows: int, ending: str) -> str:
    marks = f"({', '.join(['%s'] * len(columns))})"
    names = ", ".join(map(quote, columns))
    return f"INSERT INTO {quote(table)} ({names}) VALUES {', '.join([marks] * rows)}{ending}"


@derived
def row_storage_of(repository: Repository[Any]) -> RowStorage:
    """The statements of a repository on the current database."""
    return RowStorage(repository)


def existing(keys: Iterable[tuple[Repository[Any], str]]) -> set[tuple[str, str]]:
    """The stored ones among keys of several repositories, by one statement: (repository's name, guid)."""
    result: set[tuple[str, str]] = set()
    for part in batched(keys, CHUNK):
        groups: dict[Repository[Any], list[str]] = {}
        for repository, id in part:
            groups.setdefault(repository, []).append(id)
        selects = [
            f"SELECT {number}, {quote(each.key_column)} FROM {quote(each.table)} "
            f"WHERE {quote(each.key_column)} IN ({', '.join(['%s'] * len(ids))})"
            for number, (each, ids) in enumerate(groups.items())
        ]
        names = [each.name for each in groups]
        found = fetch(" UNION ALL ".join(selects), [id for ids in groups.values() for id in ids])
        result.update((names[number], str(id)) for number, id in found)
    return result


@dataclass(frozen=True, slots=True)
class Referrer:
    """A reference of the model to a repository."""

    repository: Repository[Any]
    attribute: Attribute


@derived
def referrers_to(repository: Repository[Any]) -> list[Referrer]:
    """Every stored reference, except ownership, that may hold a key of the repository's entities."""
    targets = {repository.name}
    base = repository.base
    while base is not None:
        targets.add(base.name)
        base = base.base
    return [
        Referrer(other, attribute)
        for other in repositories
        for attribute in other.references.values()
        if attribute.target in targets
        and not attribute.owner
        and not other.view_of
        and attribute.table in {table for table, _ in other.tables[-1:]}
    ]


def references_in_use(repository: Repository[Any], ids: Sequence[str]) -> Iterator[tuple[Referrer, str]]:
    """Stored references to one of the entities: (referrer, guid of the referring entity)."""
    for part in batched(ids, CHUNK):
        marks = ", ".join(["%s"] * len(part))
        for group in batched(referrers_to(repository), 100):
            selects: list[str] = []
            parameters: list[Any] = []
            for number, referrer in enumerate(group):
                own_key = dict(referrer.repository.tables)[referrer.attribute.table]
                selects.append(
                    f"SELECT {number} AS n, {quote(own_key)} AS k FROM {quote(referrer.attribute.table)} "
                    f"WHERE {quote(referrer.attribute.column)} IN ({marks})"
                )
                parameters.extend(part)
            with connection.cursor() as cursor:
                cursor.execute(" UNION ALL ".join(selects), parameters)
                # A commit may delete thousands of the referring entities, too; callers stop at the first one it keeps.
                while rows := cursor.fetchmany(CHUNK):
                    for number, key in rows:
                        yield group[number], str(key)
