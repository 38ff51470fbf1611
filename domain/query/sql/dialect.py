"""The interface of a SQL dialect: functions, parameters, output columns (storage: foundation.fields).

Function templates are keyed by the engine's name for the function, or by name and sort of the first argument
(`hour:TIME`). Both dialects give the same results: strings compare by code point, lower and upper case follow Unicode,
nulls sort first.
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from domain.database.bypass import Row
from domain.model.attributes import Attribute
from domain.model.values import moment_to_storage
from domain.query.base.bound import STRING, Sort, ValueType
from domain.query.base.functions import query_functions
from domain.query.sql.fragments import Param, Sql, Static, compose
from foundation.enums import DOCUMENT_STATE


class PlanValues(enum.Enum):
    """The kind of values of a statement that its query plan depends on."""

    KEYS = "a key or the keys of a batch: one plan suits all of them, whatever else there is"
    BOUNDS = "nothing but how many rows to fetch and to pass over"
    ANY = "values of conditions, which may hold for one row or for most"


#: White space of Unicode (trim).
_WHITE_SPACE = "".join(chr(code) for code in range(0x3001) if chr(code).isspace())

#: More characters than any text has.
LONGEST = 1 << 30
NUMBER_PATTERN = "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)$"
GUID_PATTERN = "^[0-9a-f]{8,8}-[0-9a-f]{4,4}-[0-9a-f]{4,4}-[0-9a-f]{4,4}-[0-9a-f]{12,12}$"
#: More days than between any two dates.
MAX_DAYS = 4_000_000
COMMON_TEMPLATES: dict[str, str] = {
    "length": "length({0})",
    "concat": "({0} || {1})",
    "or_empty": "coalesce({0}, '')",
    "or_zero": "coalesce({0}, 0)",
    "is_true": "({0} IS TRUE)",
    "negate": "(- {0})",
    "duration_add": "({0} + {1})",
    "duration_sub": "({0} - {1})",
    "state_number": "{0}",
    "duration_days": "({0} / 86400000000)",
    "to_text:STRING": "{0}",
    "to_text:ENUM": "{0}",
}


class Dialect:
    """The base of both dialects."""

    vendor = ""
    scaled_decimals = False
    templates: Mapping[str, str] = {}

    def function(self, name: str, sort: Sort, *arguments: Sql) -> Sql:
        """A call of an engine function. Raises KeyError for an unknown one."""
        if (added := query_functions.get(name)) is not None:
            return compose(added.template(self.vendor), *arguments)
        template = self.templates.get(f"{name}:{sort.name}") or self.templates[name]
        if "{9}" in template:
            arguments = (*arguments, *(Sql(""),) * (9 - len(arguments)), Sql("%s", (Static(_WHITE_SPACE),)))
        return compose(template, *arguments)

    def encode(self, value_type: ValueType, scale: int | None) -> Callable[[Any], Any]:
        """The conversion from the canonical value to the driver's."""
        raise NotImplementedError

    def without_members(self, stored: Sql, names: Sequence[str]) -> Sql:
        """The text of a JSON object without some of its members."""
        raise NotImplementedError

    def encode_moment(self) -> Callable[[datetime.datetime], Any]:
        """The conversion of a stored time."""
        return moment_to_storage(self.vendor)

    def kept_json(self, stored: str, name: str) -> str:
        """A member of a JSON text, as a JSON text."""
        raise NotImplementedError

    def kept_value(self, stored: str, attribute: Attribute) -> str:
        """An attribute's value in the JSON text of a change (ObjectChange.old_values), as its column stores it."""
        raise NotImplementedError

    def is_kept(self, stored: str, name: str) -> str:
        """The condition that the JSON text of a change has the member, if only as null."""
        raise NotImplementedError

    def rescaled(self, value: str, before: int, after: int) -> str:
        """A decimal as a column of `after` places stores it, of one as a column of `before` places does."""
        raise NotImplementedError

    def placeholder(self, value_type: ValueType) -> str:
        """The placeholder of a parameter of the type."""
        return "%s"

    def seek_placeholder(self, value_type: ValueType) -> str:
        """The placeholder of an order key whose value an earlier page returned."""
        return "%s"

    def null(self, value_type: ValueType) -> str:
        """A null of the type."""
        return "NULL"

    def output(self, value: Sql, value_type: ValueType) -> Sql:
        """An output column in the form that shapers read."""
        raise NotImplementedError

    def order(self, value: Sql, *, is_descending: bool, nullable: bool, sort: Sort) -> Sql:
        """One key of ORDER BY; null is the least value (11.2.6.2)."""
        raise NotImplementedError

    def collated(self, value: Sql, sort: Sort) -> Sql:
        """A value in a collation that orders by code point."""
        return value

    def indexes_by_code_point(self) -> bool:
        """Whether the index of a text column orders by code point, and so finds a range of texts."""
        return True

    def among_keys(self, column: Sql, keys: Param) -> Sql:
        """The condition that a key is among those of a batch, all of which are one parameter."""
        raise NotImplementedError

    def encode_keys(self, keys: list[str]) -> Any:
        """The value of that parameter."""
        raise NotImplementedError

    def pattern(self, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Extend the conversion of a pattern operand by the translation to the database's syntax."""
        return convert

    def text_parameter(self, value: str) -> Sql:
        """A constant text."""
        return Sql(self.placeholder(STRING), (Static(value),))

    def same(self, left: Sql, right: Sql) -> Sql:
        """Equality in which null equals null; never null."""
        raise NotImplementedError

    def different(self, left: Sql, right: Sql) -> Sql:
        """The negation of `same`."""
        raise NotImplementedError

    def texts_of(self, texts: Sql, alias: str) -> Sql:
        """A table with a column `value` of the texts of a multilanguage value."""
        raise NotImplementedError

    def prepare(self, connection: Any) -> None:
        """Add the functions that the database lacks to the connection."""

    def native(self, text: str) -> str:
        """The statement in the driver's placeholder syntax."""
        return text

    def fetch(self, connection: Any, native: str, parameters: Sequence[Any], values: PlanValues) -> list[Row]:
        """All rows, without Django's cursor."""
        raise NotImplementedError


def microseconds(value: datetime.timedelta) -> int:
    return value // datetime.timedelta(microseconds=1)


def states(value: str) -> str:
    """The number of a document's state from its name."""
    branches = " ".join(f"WHEN '{name}' THEN {number}" for name, number in DOCUMENT_STATE.members.items())
    return f"CASE {value} {branches} END"
