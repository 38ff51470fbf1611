"""Indexes of the custom properties that are marked as indexed (spec 10, 10.2).

An index is on the expression that queries use (domain.query.sql.custom_values), with the key behind it, so that a page
is read off it in order. It is made and dropped in the transaction that commits the definition.
"""

from __future__ import annotations

from django.db import connection

from domain.dataset.tables.row_storage import quote
from domain.model.custom_properties import Definition
from domain.model.registry import repositories
from domain.query import custom_index_expression


def index_name(id: str) -> str:
    """The name of the index of a definition."""
    return f"custom_{id.replace('-', '')}_idx"


def write_index(id: str, repository: str, definition: Definition | None) -> None:
    """Replace the index of a definition's values; None drops it."""
    table, key = repositories[repository].tables[0]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A table with rows whose deferred constraints are still to be checked takes no index.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute(f"DROP INDEX IF EXISTS {quote(index_name(id))}")
        if definition is None:
            return
        # Null is the least value in every order of the read engine.
        nulls = " NULLS FIRST" if connection.vendor == "postgresql" else ""
        expression = custom_index_expression(definition)
        cursor.execute(f"CREATE INDEX {quote(index_name(id))} ON {quote(table)} (({expression}){nulls}, {quote(key)})")


__all__ = ["index_name", "write_index"]
