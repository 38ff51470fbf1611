"""Finds all columns with sealed texts (foundation.vault), and encrypts them again with a new key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.apps import apps
from django.db import connection, transaction

from foundation import vault

_BATCH = 500
_SESSION_DATA = ("sessions.Session", "session_data")


class SealedColumn(NamedTuple):
    """A column, by its names in the database."""

    table: str
    key: str
    column: str


def sealed_columns() -> Iterator[SealedColumn]:
    """Columns of fields with `is_sealed`, and the data of browser sessions, whose model is Django's."""
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if getattr(field, "is_sealed", False) or (model._meta.label, field.name) == _SESSION_DATA:
                yield SealedColumn(model._meta.db_table, str(model._meta.pk.column), str(field.column))


def rows_of_former_keys() -> dict[str, int]:
    """Column, as table.column → number of its rows with a text of an available key that is not the newest."""
    former = [f"%{vault.PREFIX}{key}:%" for key in vault.key_ids()[1:]]
    result: dict[str, int] = {}
    for column in sealed_columns() if former else ():
        select = "SELECT COUNT(*) FROM {table} WHERE " + " OR ".join(["{column} LIKE %s"] * len(former))  # noqa: S608
        ((rows,),) = _fetch(column, select, former)
        if rows:
            result[f"{column.table}.{column.column}"] = rows
    return result


def unreadable_rows() -> dict[str, int]:
    """Id of a missing key, or "damaged" → number of rows that cannot be decrypted.

    For available keys it decrypts one row of each column only: a key decrypts all of its texts or none.
    """
    result: dict[str, int] = {}
    known = vault.key_ids()
    for column in sealed_columns():
        select = "SELECT {column} FROM {table} WHERE " + _unknown(known)  # noqa: S608 (names of our own)
        for (stored,) in _fetch(column, select, _patterns(known)):
            for key in {match[1] for match in vault.SEALED.finditer(stored)} - set(known):
                result[key] = result.get(key, 0) + 1
        for key in known:
            sample = _fetch(
                column, "SELECT {column} FROM {table} WHERE {column} LIKE %s LIMIT 1", [f"%{vault.PREFIX}{key}:%"]
            )
            if any(_is_damaged(stored) for (stored,) in sample):
                result["damaged"] = result.get("damaged", 0) + 1
    return result


def reseal_all() -> tuple[int, int]:
    """Encrypt all texts of other keys with the newest key: (rows changed, rows that cannot be decrypted).

    Works in batches, each in its own transaction. Does not overwrite rows that another process changes meanwhile.
    """
    changed = unreadable = 0
    for column in sealed_columns():
        done, failed = _reseal(column)
        changed, unreadable = changed + done, unreadable + failed
    return changed, unreadable


def _reseal(column: SealedColumn) -> tuple[int, int]:
    newest = vault.key_ids()[0]
    changed = unreadable = 0
    last: object = None
    while True:
        after = "" if last is None else " AND {key} > %s"
        rows = _fetch(
            column,
            "SELECT {key}, {column} FROM {table} WHERE "  # noqa: S608
            + f"{_unknown([newest])}{after} ORDER BY {{key}} LIMIT {_BATCH}",
            [*_patterns([newest]), *([] if last is None else [last])],
        )
        if not rows:
            return changed, unreadable
        last = rows[-1][0]
        with transaction.atomic():
            for key, stored in rows:
                result = vault.resealed(stored)
                unreadable += any(match[1] != newest for match in vault.SEALED.finditer(result))
                if result != stored:
                    changed += _execute(
                        column, "UPDATE {table} SET {column} = %s WHERE {key} = %s AND {column} = %s",
                        [result, key, stored],
                    )  # fmt: skip


def _unknown(keys: Sequence[str]) -> str:
    """SQL condition: the column has at least one sealed text of a key that is not in `keys`."""
    stripped = "{column}"
    for _ in keys:
        stripped = f"REPLACE({stripped}, %s, '')"
    return f"{stripped} LIKE %s"


def _patterns(keys: Sequence[str]) -> list[str]:
    return [*(f"{vault.PREFIX}{key}:" for key in keys), f"%{vault.PREFIX}%:%"]


def _is_damaged(stored: str) -> bool:
    return any(isinstance(vault.unseal(match[0]), vault.Unreadable) for match in vault.SEALED.finditer(stored))


def _fetch(column: SealedColumn, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(_named(column, sql), parameters)
        return list(cursor.fetchall())


def _execute(column: SealedColumn, sql: str, parameters: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_named(column, sql), parameters)
        return int(cursor.rowcount)


def _named(column: SealedColumn, sql: str) -> str:
    quote = connection.ops.quote_name
    return sql.format(table=quote(column.table), key=quote(column.key), column=quote(column.column))
