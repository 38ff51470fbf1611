"""The statements that make and change the tables of custom entities.

They are the same on SQLite and PostgreSQL except for changes of a column's type, and run in the transaction that
writes the definition. No statement rebuilds a table: columns of attributes are nullable in the database, and the
dataset, which writes every row, refuses missing values; uniqueness is a unique index. So an attribute that becomes
required or optional changes no table, and SQLite needs no transaction of a special kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db import connection, models

from domain.entities.custom_entities.definitions import AttributeDefinition, EntityDefinition

#: Rows a second that UPDATE or a rebuilt table writes, and that a new index reads: vendor → (written, indexed).
#: Measured with 300,000 rows of six columns on two busy cores (2026-11): SQLite 0.9 and 0.8 million, PostgreSQL 29,000
#: to 64,000 and 200,000 to 360,000.
_ROWS_A_SECOND = {"sqlite": (500_000, 500_000), "postgresql": (30_000, 200_000)}


def write_seconds(rows: int) -> float:
    """Estimated time to write this number of rows."""
    return rows / _ROWS_A_SECOND[connection.vendor][0]


def index_seconds(rows: int) -> float:
    """Estimated time to make an index of this number of rows."""
    return rows / _ROWS_A_SECOND[connection.vendor][1]


def quote(name: str) -> str:
    return connection.ops.quote_name(name)


def execute(text: str, parameters: Sequence[Any] = ()) -> None:
    """Execute a statement in the open transaction."""
    with connection.cursor() as cursor:
        cursor.execute(text, list(parameters) or None)


def count(definition: EntityDefinition, condition: str = "", parameters: Sequence[Any] = ()) -> int:
    """The number of rows of the entity's table, or of those that the SQL condition holds for."""
    where = f" WHERE {condition}" if condition else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {quote(definition.table)}{where}", list(parameters) or None)
        return int(cursor.fetchone()[0])


def count_duplicates(definition: EntityDefinition, columns: Sequence[str]) -> int:
    """The number of combined values of the columns that several rows have."""
    listed = ", ".join(map(quote, columns))
    filled = " AND ".join(f"{quote(column)} IS NOT NULL" for column in columns)
    grouped = f"SELECT 1 FROM {quote(definition.table)} WHERE {filled} GROUP BY {listed} HAVING COUNT(*) > 1"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM ({grouped}) AS doubles")
        return int(cursor.fetchone()[0])


def create_table(definition: EntityDefinition, model: type[models.Model]) -> None:
    """Create the table of the entity's model."""
    own = {attribute.python_name for attribute in definition.attributes}
    columns = [_column(field, nullable=field.name in own) for field in model._meta.local_concrete_fields]
    execute(f"CREATE TABLE {quote(definition.table)} ({', '.join(columns)})")


def drop_table(definition: EntityDefinition) -> None:
    """Drop the table."""
    execute(f"DROP TABLE {quote(definition.table)}")


def add_column(definition: EntityDefinition, field: models.Field[Any, Any]) -> None:
    """Add the column of an attribute, with its default in every row."""
    execute(f"ALTER TABLE {quote(definition.table)} ADD COLUMN {_column(field, nullable=True)}")
    if field.has_default():
        fill_column(definition, field)


def fill_column(definition: EntityDefinition, field: models.Field[Any, Any]) -> None:
    """Write the attribute's default where it has no value."""
    value = field.get_db_prep_save(field.get_default(), connection)
    column = quote(field.column or "")
    execute(f"UPDATE {quote(definition.table)} SET {column} = %s WHERE {column} IS NULL", [value])


def drop_column(definition: EntityDefinition, attribute: AttributeDefinition) -> None:
    """Drop the column of an attribute."""
    execute(f"ALTER TABLE {quote(definition.table)} DROP COLUMN {quote(attribute.column)}")


def rename_columns(definition: EntityDefinition, names: Mapping[str, str]) -> None:
    """Rename columns, old name → new one. Those whose names others take have temporary names meanwhile."""
    # No name of an attribute begins with a digit.
    meanwhile = {old: f"{index} renamed" for index, old in enumerate(names) if old in names.values()}
    renamings = [*meanwhile.items(), *((meanwhile.get(old, old), new) for old, new in names.items())]
    for old, new in renamings:
        execute(f"ALTER TABLE {quote(definition.table)} RENAME {quote(old)} TO {quote(new)}")


def change_type(
    definition: EntityDefinition, old: AttributeDefinition, new: AttributeDefinition, field: models.Field[Any, Any]
) -> None:
    """Change the type of a column and its values: truncates texts, rounds numbers.

    SQLite's columns accept values of all these types, so there only the values change.
    """
    table, column = quote(definition.table), quote(new.column)
    if connection.vendor == "postgresql":
        kind = field.db_parameters(connection)["type"]
        execute(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {kind} USING {column}::{kind}")
    elif new.type == "Text" and new.max_length is not None:
        execute(f"UPDATE {table} SET {column} = substr({column}, 1, {new.max_length}) WHERE {column} IS NOT NULL")
    elif (places := new.decimal_places - old.decimal_places) > 0:
        execute(f"UPDATE {table} SET {column} = {column} * {10**places}")
    elif places < 0:
        unit = 10**-places
        half = f"CASE WHEN {column} < 0 THEN -{unit // 2} ELSE {unit // 2} END"
        execute(f"UPDATE {table} SET {column} = ({column} + {half}) / {unit}")


def count_values(definition: EntityDefinition, attribute: AttributeDefinition, values: Collection[str]) -> int:
    """The number of rows with one of the texts."""
    places = ", ".join(["%s"] * len(values))
    return count(definition, f"{quote(attribute.column)} IN ({places})", [*values]) if values else 0


def replace_values(
    definition: EntityDefinition, attribute: AttributeDefinition, values: Mapping[str, str | None]
) -> None:
    """Write another text, or none, where a row has one of the texts."""
    column = quote(attribute.column)
    whens = " ".join(["WHEN %s THEN %s"] * len(values))
    places = ", ".join(["%s"] * len(values))
    pairs = [text for pair in values.items() for text in pair]
    execute(
        f"UPDATE {quote(definition.table)} SET {column} = CASE {column} {whens} END WHERE {column} IN ({places})",
        [*pairs, *values],
    )


def create_index(definition: EntityDefinition, names: Iterable[str], *, unique: bool) -> None:
    """Create the unique index over attributes, or the index of one that ends in the key."""
    names = tuple(names)
    columns = [quote(definition.by_name[name].column) for name in names] + (
        [] if unique else [quote(definition.key_column)]
    )
    name = definition.index_name(names, "key" if unique else "idx")
    execute(
        f"CREATE {'UNIQUE ' if unique else ''}INDEX {quote(name)} ON {quote(definition.table)} ({', '.join(columns)})"
    )


def drop_index(definition: EntityDefinition, names: Iterable[str], *, unique: bool) -> None:
    """Drop an index that create_index made."""
    execute(f"DROP INDEX {quote(definition.index_name(names, 'key' if unique else 'idx'))}")


def create_owner_index(definition: EntityDefinition, column: str) -> None:
    """Create the index of the reference to the owner."""
    name = definition.index_name((column,), "own")
    execute(f"CREATE INDEX {quote(name)} ON {quote(definition.table)} ({quote(column)}, {quote('id')})")


def _column(field: models.Field[Any, Any], *, nullable: bool) -> str:
    """The definition of a column."""
    text = f"{quote(field.column or '')} {field.db_parameters(connection)['type']}"
    if field.primary_key:
        text += " NOT NULL PRIMARY KEY"
    elif not (nullable or field.null):
        text += " NOT NULL"
    if isinstance(field, models.ForeignKey):
        target = field.target_field
        table, key = quote(target.model._meta.db_table), quote(target.column or "")
        text += f" REFERENCES {table} ({key}) DEFERRABLE INITIALLY DEFERRED"
    return text
