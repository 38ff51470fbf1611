"""SQL of a custom property's value, the same in queries and in the indexes of marked properties.

A code is a literal in the statement, since the database uses an index on an expression only for the same expression.
"""

from __future__ import annotations

import json

from domain.model.custom_properties import Definition
from domain.query.base.bound import STRING, Sort
from domain.query.bind.type_rules import CUSTOM_TYPES
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Sql


def custom_member(dialect: Dialect, stored: Sql, code: str, member: str) -> Sql:
    """`Value` (or another member) in the stored JSON as text; the whole object without a member."""
    name = "custom" if member else "custom_object"
    return dialect.function(_spelled(dialect, name, code), Sort.STRING, stored, *_literals(dialect, code, member))


def custom_is(dialect: Dialect, stored: Sql, code: str, value: Sql) -> Sql:
    """Whether the custom property has this text as its value."""
    return dialect.function(
        _spelled(dialect, "custom_is", code), Sort.STRING, stored, *_literals(dialect, code, ""), value
    )


def index_expression(dialect: Dialect, definition: Definition) -> Sql:
    """The expression of an index: the SQL by which queries compare and order, over the bare column name."""
    stored = custom_member(dialect, Sql('"custom_property_values"'), definition.code, "Value")
    function, result = CUSTOM_TYPES.get(definition.kind, ("", STRING))
    if function:
        return dialect.function(function, Sort.STRING, stored)
    return dialect.collated(stored, result.sort)


def _spelled(dialect: Dialect, name: str, code: str) -> str:
    """The name of the function for the code; some dialects have another one for codes that JSON escapes."""
    escaped = f"{name}_escaped"
    is_escaped = json.dumps(code, ensure_ascii=False)[1:-1] != code
    return escaped if is_escaped and escaped in dialect.templates else name


def _literals(dialect: Dialect, code: str, member: str) -> tuple[Sql, ...]:
    """The code, and the member if given, escaped for templates that put them in quotes."""
    texts = (code, member) if member else (code,)
    return tuple(Sql(text.replace("'", "''").replace("%", "%%")) for text in texts)
