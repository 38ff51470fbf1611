"""Millions of rows on PostgreSQL in minutes: copies of the mass data, inserted by SQL.

The keys of a copy are those of its original with the number of the copy in them, and its references are changed in the
same way. Tests of the demo's loader show that the originals equal those of the write engine.
"""

from __future__ import annotations

import psycopg
from psycopg.sql import SQL, Composable, Identifier, Literal

from domain.demo.items import Kind, demo_guid

#: Numbers of copied mass rows, and table → (key column, kind of the keys).
PRODUCTS, ORDERS = 100_000, 10_000
_TABLES = {
    "domain_product": ("id", Kind.MASS_PRODUCT),
    "domain_productprice": ("id", Kind.MASS_PRICE),
    "domain_document": ("id", Kind.MASS_ORDER),
    "domain_salesorder": ("document_ptr_id", Kind.MASS_ORDER),
    "domain_salesorderline": ("id", Kind.MASS_ORDER_LINE),
}
#: Numbered column, whose text is M and a number → (digits of the number, number of originals).
_NUMBERED = {"part_number": (7, PRODUCTS), "document_no": (9, ORDERS)}


def multiply(database_url: str, products: int, orders: int) -> None:
    """Copy the loaded mass data up to these numbers, which are whole multiples of PRODUCTS and ORDERS."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # skips the checks of foreign keys
        connection.execute("SET maintenance_work_mem = '1GB'")
        for table, (key, kind) in _TABLES.items():
            copies = (products // PRODUCTS if "product" in table else orders // ORDERS) - 1
            _copy(connection, table, key, kind, copies)
        connection.execute("VACUUM ANALYZE")


def _copy(connection: psycopg.Connection, table: str, key: str, kind: Kind, copies: int) -> None:
    columns = list(connection.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s", [table]
    ))  # fmt: skip
    indexes = list(connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s AND indexname NOT IN"
        " (SELECT conname FROM pg_constraint WHERE conrelid = %s::regclass)", [table, table]
    ))  # fmt: skip
    for name, _ in indexes:
        connection.execute(SQL("DROP INDEX {}").format(Identifier(name)))
    copied = SQL("INSERT INTO {} ({}) SELECT {} FROM {} AS o, generate_series(1, {}) AS copy WHERE o.{}::text LIKE {}")
    connection.execute(copied.format(
        Identifier(table),
        SQL(", ").join(Identifier(name) for name, _ in columns),
        SQL(", ").join(_value(name, type) for name, type in columns),
        Identifier(table), Literal(copies), Identifier(key), Literal(f"{demo_guid(kind, 0)[:18]}%"),
    ))  # fmt: skip
    for _, definition in indexes:
        connection.execute(definition)


def _value(column: str, type: str) -> Composable:
    """The value of a copy's column; keys of mass data have the number of the copy after the version digit."""
    name = Identifier(column)
    if column in _NUMBERED:
        digits, originals = _NUMBERED[column]
        text = "'M' || lpad((copy::bigint * {} + substr(o.{}, 2)::bigint)::text, {}, '0')"
        return SQL(text).format(Literal(originals), name, Literal(digits))
    if type == "uuid":
        kinds = sorted({demo_guid(kind, 0)[:18] for _, kind in _TABLES.values()})
        text = (
            "CASE WHEN left(o.{}::text, 18) IN ({}) THEN"
            " overlay(o.{}::text placing lpad(to_hex(copy), 3, '0') from 16 for 3)::uuid ELSE o.{} END"
        )
        return SQL(text).format(name, SQL(", ").join(map(Literal, kinds)), name, name)
    return SQL("o.{}").format(name)
