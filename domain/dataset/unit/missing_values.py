"""Substitutes for missing required values of pending rows: columns refuse null, so substitutes are written, which
statements read as NULL.

The statements of the read engine name each table with an alias (`"table" t1`) and each column by it (`t1."column"`);
these are rewritten (domain.query.sql.joins).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import UUID

from domain.dataset.records.record import Record
from domain.model.attributes import Attribute
from foundation.guids import new_guid
from foundation.kinds import Kind

_TABLE = re.compile(r'"(\w+)" (t\d+)\b')
_COLUMN = re.compile(r'\b(t\d+)\."(\w+)"')
_INNER_JOIN = re.compile(r'(?<!LEFT )\bJOIN "')
_ORDER = re.compile(r" (?:ASC|DESC)\b(?! NULLS)")
#: First character of Unicode's private use area, which texts rarely contain, and the number of its characters.
_PRIVATE, _PRIVATE_COUNT = 0xE000, 6_400


class MissingValues:
    """The missing values of rows in the current savepoint."""

    def __init__(self) -> None:
        #: (table, column) → (key column of the table, SQL literals of the keys of the rows)
        self._columns: dict[tuple[str, str], tuple[str, list[str]]] = {}
        self._count = 0

    @contextmanager
    def filled(self, lacking: Iterable[tuple[Record, Sequence[str]]]) -> Iterator[None]:
        """Within the block, the records have substitutes for these values (API names); afterwards null again."""
        records = [(record, names) for record, names in lacking if names]
        for record, names in records:
            key_columns = dict(record.repository.tables)
            for name in names:
                attribute = record.repository.attributes[name]
                record.values[name] = self._stand_in(attribute)
                _, keys = self._columns.setdefault(
                    (attribute.table, attribute.column), (key_columns[attribute.table], [])
                )
                keys.append(f"'{UUID(record.id)}'")
        try:
            yield
        finally:
            for record, names in records:
                record.values.update(dict.fromkeys(names))

    def hidden_in(self, sql: Any) -> Any:
        """The statement with NULL in place of every substitute."""
        if not self._columns:
            return sql
        text = str(sql)
        tables = {alias: table for table, alias in _TABLE.findall(text)}

        def column(found: re.Match[str]) -> str:
            known = self._columns.get((tables.get(found[1], ""), found[2]))
            if known is None:
                return found[0]
            key, keys = known
            return f'(CASE WHEN {found[1]}."{key}" IN ({", ".join(keys)}) THEN NULL ELSE {found[0]} END)'

        hidden = _COLUMN.sub(column, text)
        if hidden == text:
            return text
        # A required reference is joined without LEFT; if it is missing, the row must remain.
        hidden = _INNER_JOIN.sub('LEFT JOIN "', hidden)
        # ORDER BY on a required column has no NULLS clause, and PostgreSQL's default is not OData's order.
        return _ORDER.sub(lambda found: f"{found[0]} NULLS {'FIRST' if found[0] == ' ASC' else 'LAST'}", hidden)

    def _stand_in(self, attribute: Attribute) -> Any:
        """A value for the column; in a unique column, one that no row has."""
        self._count += 1
        match attribute.kind:
            case Kind.STRING:
                number, last = divmod(self._count, _PRIVATE_COUNT)
                text = chr(_PRIVATE + number) + chr(_PRIVATE + last)
                return text if attribute.max_length is None else text[-attribute.max_length :]
            case Kind.INT:
                return -self._count
            case Kind.BOOL:
                return False
            case Kind.DECIMAL | Kind.AMOUNT | Kind.QUANTITY:
                return Decimal(0)
            case Kind.DATE:
                return datetime.date.min
            case Kind.DATETIME:
                return datetime.datetime(1, 1, 2, tzinfo=datetime.UTC)
            case Kind.BINARY:
                return b""
            case Kind.MULTILANGUAGE:
                return {}
            case Kind.ENUM | Kind.STATE if attribute.enum is not None:
                return next(iter(attribute.enum.members))
        return new_guid()
