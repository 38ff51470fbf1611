"""Millions of rows on PostgreSQL in minutes: copies of the mass data, made by the database.

A copy has the keys of its original with the number of the copy in them, and refers to the copies of what the original
refers to. Tests of the demo's own loader show that the originals are as the write engine makes them.
"""

from __future__ import annotations

import psycopg
from psycopg.sql import SQL, Composable, Identifier, Literal

from domain.demo.items import Kind, demo_guid

#: Mass rows that are copied, and the tables with the kinds of their keys.
PRODUCTS, ORDERS = 100_000, 10_000
_TABLES = {
    "domain_product": ("id", Kind.MASS_PRODUCT),
    "domain_productprice": ("id", Kind.MASS_PRICE),
    "domain_document": ("id", Kind.MASS_ORDER),
    "domain_salesorder": ("document_ptr_id", Kind.MASS_ORDER),
    "domain_salesorderline": ("id", Kind.MASS_ORDER_LINE),
}
#: Column → the number of the original in its text, which begins with M and has so many digits.
_NUMBERED = {"part_number": (7, PRODUCTS), "document_no": (9, ORDERS)}


def multiply(database_url: str, products: int, orders: int) -> None:
    """Copy the loaded mass data until there are so many products and orders, whole multiples of PRODUCTS and ORDERS."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # what refers to what needs no check
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
    """What a copy has in a column; keys of mass data have the number of the copy behind the version digit."""
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
