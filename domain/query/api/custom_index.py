"""Index expressions of custom properties, in the SQL of the default database."""

from __future__ import annotations

from domain.model.custom_properties import Definition
from domain.query.sql import dialects
from domain.query.sql.custom_values import index_expression


def custom_index_expression(definition: Definition) -> str:
    """The SQL by which queries compare and order the property, over the bare column name, without parameters."""
    return index_expression(dialects.current(), definition).text.replace("%%", "%")
