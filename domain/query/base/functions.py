"""Query functions that apps add to those of OData: one class each, with SQL for both databases.

@query_functions.register
class ByteLength(QueryFunction):
    name = "bytelength"
    arguments = (STRING,)
    result = INTEGER
    sqlite = "length(CAST({0} AS BLOB))"
    postgresql = "octet_length({0})"
"""

from __future__ import annotations

from typing import ClassVar

from domain.query.base.bound import ValueType
from domain.syntax.functions import FUNCTIONS, Function
from foundation.catalogue import Catalogue


class QueryFunction:
    """Base of every added function. Its result is null exactly if an argument is.

    arguments    types of the arguments: STRING, INTEGER, BOOL, DATE, DATETIME or TIME (domain.query.base.bound)
    sqlite, postgresql   the SQL expression, with {0} for the first argument; a percent sign is written %%
    """

    name: ClassVar[str] = ""
    arguments: ClassVar[tuple[ValueType, ...]] = ()
    result: ClassVar[ValueType]
    sqlite: ClassVar[str]
    postgresql: ClassVar[str]

    def template(self, vendor: str) -> str:
        """The SQL expression for the database of this vendor."""
        return self.postgresql if vendor == "postgresql" else self.sqlite


class QueryFunctions(Catalogue[QueryFunction]):
    """The catalogue of added functions, which the parser reads."""

    def add(self, name: str, item: QueryFunction) -> None:
        """Add a function. Raises ValueError for a name of OData or the platform, in any case."""
        if name.lower() in FUNCTIONS:
            raise ValueError(f"the {self.kind} {name} exists already")
        super().add(name, item)
        FUNCTIONS[name.lower()] = Function(name, len(item.arguments), len(item.arguments))

    def remove(self, name: str) -> QueryFunction:
        """Remove a function (tests). Raises KeyError."""
        del FUNCTIONS[name.lower()]
        return super().remove(name)


query_functions = QueryFunctions("query function")
