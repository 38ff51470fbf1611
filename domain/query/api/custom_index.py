"""The expression of an index of a custom property, in the SQL of this database."""

from __future__ import annotations

from domain.model.custom_properties import Definition
from domain.query.sql import dialects
from domain.query.sql.custom_values import index_expression


def custom_index_expression(definition: Definition) -> str:
    """What queries compare and order by, over the column alone; without parameters."""
    return index_expression(dialects.current(), definition).text.replace("%%", "%")
