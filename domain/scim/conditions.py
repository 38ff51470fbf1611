"""Filters as conditions of Django's ORM: values are parameters of the query, names come from a table."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import Q
from django.utils.dateparse import parse_datetime

from domain.scim.errors import ScimError
from domain.scim.filters import And, Comparison, Not, Or, Tree, ValuePath
from foundation.guids import is_guid
from foundation.messages import TranslatableMessage as Message

_NOTHING = Q(pk__in=[])
_TEXT = {"eq": "iexact", "co": "icontains", "sw": "istartswith", "ew": "iendswith"}
_EXACT = {"eq": "exact", "co": "contains", "sw": "startswith", "ew": "endswith"}
_ORDER = {"gt": "gt", "ge": "gte", "lt": "lt", "le": "lte"}


@dataclass(frozen=True, slots=True)
class Column:
    """The column behind a path of a filter.

    kind      text: compared without case; exact: with case; constant: every row has the same value
    lookup    the ORM lookup
    constant  the value of the kind constant
    """

    kind: Literal["text", "exact", "guid", "bool", "time", "constant"]
    lookup: str
    constant: str | bool = ""


#: Path in lower case → column.
Columns = Mapping[str, Column]


def condition(tree: Tree, columns: Columns, *, within: str = "") -> Q:
    """The condition of a filter. Raises ScimError(invalidFilter) for unknown paths and values of a wrong type."""
    match tree:
        case And(parts):
            result = Q()
            for part in parts:
                result &= condition(part, columns, within=within)
            return result
        case Or(parts):
            result = condition(parts[0], columns, within=within)
            for part in parts[1:]:
                result |= condition(part, columns, within=within)
            return result
        case Not(part):
            return ~condition(part, columns, within=within)
        case ValuePath(path, inner):
            return condition(inner, columns, within=f"{path}.")
        case Comparison():
            return _compared(tree, column_of(within + tree.path, columns))


def column_of(path: str, columns: Columns) -> Column:
    """The column of a path. Raises ScimError(invalidFilter)."""
    column = columns.get(path.lower())
    if column is None:
        raise ScimError(400, Message("There is no attribute {0} to filter by.", path[:100]), "invalidFilter")
    return column


def _compared(comparison: Comparison, column: Column) -> Q:
    operator, value, lookup = comparison.operator, comparison.value, column.lookup
    if operator == "pr" or (value is None and operator in ("eq", "ne")):
        present = Q(**{f"{lookup}__isnull": False})
        if column.kind in ("text", "exact"):
            present &= ~Q(**{lookup: ""})
        return present if operator in ("pr", "ne") else ~present
    if operator == "ne":
        return ~_compared(Comparison(comparison.path, "eq", value), column)
    match column.kind:
        case "bool":
            return Q(**{lookup: _required(comparison, bool, ("eq",))})
        case "constant":
            wanted = _required(comparison, type(column.constant), ("eq",))
            matches = str(wanted).lower() == str(column.constant).lower()
            return Q(**{f"{lookup}__isnull": False}) if matches else _NOTHING
        case "guid":
            text = _required(comparison, str, ("eq",))
            return Q(**{lookup: text}) if is_guid(text) else _NOTHING
        case "time":
            return Q(**{f"{lookup}__{ {'eq': 'exact', **_ORDER}[operator] }": _time(comparison)})
        case "text" | "exact":
            text = _required(comparison, str, (*_TEXT, *_ORDER))
            names = {**(_TEXT if column.kind == "text" else _EXACT), **_ORDER}
            return Q(**{f"{lookup}__{names[operator]}": text})


def _required(comparison: Comparison, kind: type, operators: tuple[str, ...]) -> Any:
    if not isinstance(comparison.value, kind) or comparison.operator not in operators:
        raise _incomparable(comparison)
    return comparison.value


def _time(comparison: Comparison) -> datetime.datetime:
    text = _required(comparison, str, ("eq", *_ORDER))
    try:
        moment = parse_datetime(text)
        if moment is None:
            raise _incomparable(comparison)
        # OverflowError: the conversion leaves the range of datetime.
        return moment.astimezone(datetime.UTC) if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError) as exc:
        raise _incomparable(comparison) from exc


def _incomparable(comparison: Comparison) -> ScimError:
    text = Message("{0} cannot be compared in this way by {1}.", comparison.path[:100], comparison.operator)
    return ScimError(400, text, "invalidFilter")
