"""Finds all columns with encrypted texts (foundation.encryption), and encrypts them again with a new key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.apps import apps
from django.db import connection, transaction

from foundation import encryption

_BATCH = 500
_SESSION_DATA = ("sessions.Session", "session_data")


class EncryptedColumn(NamedTuple):
    """A column, by its names in the database."""

    table: str
    key: str
    column: str


def encrypted_columns() -> Iterator[EncryptedColumn]:
    """Columns of fields with `is_encrypted`, and the data of browser sessions, whose model is Django's."""
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if getattr(field, "is_encrypted", False) or (model._meta.label, field.name) == _SESSION_DATA:
                yield EncryptedColumn(model._meta.db_table, str(model._meta.pk.column), str(field.column))


def rows_of_former_keys() -> dict[str, int]:
    """Column, as table.column → number of its rows with a text of an available key that is not the newest."""
    former = [f"%{encryption.PREFIX}{key}:%" for key in encryption.key_ids()[1:]]
    result: dict[str, int] = {}
    for column in encrypted_columns() if former else ():
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
    known = encryption.key_ids()
    for column in encrypted_columns():
        select = "SELECT {column} FROM {table} WHERE " + _unknown(known)  # noqa: S608 (names of our own)
        for (stored,) in _fetch(column, select, _patterns(known)):
            for key in {match[1] for match in encryption.ENCRYPTED.finditer(stored)} - set(known):
                result[key] = result.get(key, 0) + 1
        for key in known:
            sample = _fetch(
                column, "SELECT {column} FROM {table} WHERE {column} LIKE %s LIMIT 1", [f"%{encryption.PREFIX}{key}:%"]
            )
            if any(_is_damaged(stored) for (stored,) in sample):
                result["damaged"] = result.get("damaged", 0) + 1
    return result


def reencrypt_all() -> tuple[int, int]:
    """Encrypt all texts of other keys with the newest key: (rows changed, rows that cannot be decrypted).

    Works in batches, each in its own transaction. Does not overwrite rows that another process changes meanwhile.
    """
    changed = unreadable = 0
    for column in encrypted_columns():
        done, failed = _reencrypt(column)
        changed, unreadable = changed + done, unreadable + failed
    return changed, unreadable


def _reencrypt(column: EncryptedColumn) -> tuple[int, int]:
    newest = encryption.key_ids()[0]
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
                result = encryption.reencrypted(stored)
                unreadable += any(match[1] != newest for match in encryption.ENCRYPTED.finditer(result))
                if result != stored:
                    changed += _execute(
                        column, "UPDATE {table} SET {column} = %s WHERE {key} = %s AND {column} = %s",
                        [result, key, stored],
                    )  # fmt: skip


def _unknown(keys: Sequence[str]) -> str:
    """SQL condition: the column has at least one encrypted text of a key that is not in `keys`."""
    stripped = "{column}"
    for _ in keys:
        stripped = f"REPLACE({stripped}, %s, '')"
    return f"{stripped} LIKE %s"


def _patterns(keys: Sequence[str]) -> list[str]:
    return [*(f"{encryption.PREFIX}{key}:" for key in keys), f"%{encryption.PREFIX}%:%"]


def _is_damaged(stored: str) -> bool:
    return any(
        isinstance(encryption.decrypt(match[0]), encryption.Unreadable)
        for match in encryption.ENCRYPTED.finditer(stored)
    )


def _fetch(column: EncryptedColumn, sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(_named(column, sql), parameters)
        return list(cursor.fetchall())


def _execute(column: EncryptedColumn, sql: str, parameters: Sequence[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_named(column, sql), parameters)
        return int(cursor.rowcount)


def _named(column: EncryptedColumn, sql: str) -> str:
    quote = connection.ops.quote_name
    return sql.format(table=quote(column.table), key=quote(column.key), column=quote(column.column))
