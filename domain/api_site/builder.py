"""The query builder: a form to choose columns, filters and order of a set, and the request URL of the choice.

The form's fields are set, columns, search, join, top, skip and count; path-N, was-N (the previous path), operator-N and
value-N of the condition N; by-N and direction-N of the order N; and `do` with the actions of the pressed buttons:
add-condition, add-order, remove-condition-N, remove-order-N.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext

from domain.model.registry import repositories
from domain.odata.metadata import model_json
from domain.odata.metadata.discovery import Node, sets_shown
from identity.context import CallContext

#: Maximum conditions, and maximum orders; maximum columns offered at once.
MOST_ROWS, _MOST_COLUMNS = 50, 400
_TEXT = ("contains", "startswith", "endswith", "eq", "ne", "isnull", "notnull")
_NUMBER = ("eq", "ne", "gt", "ge", "lt", "le", "isnull", "notnull")
#: Type of a column → the operators that fit, in the order offered.
_OPERATORS: dict[str, tuple[str, ...]] = {
    "Edm.String": _TEXT, "Erp.MultilanguageString": ("contains",), "Edm.Boolean": ("eq",), "Edm.Int32": _NUMBER,
    "Edm.Decimal": _NUMBER, "Edm.Date": _NUMBER, "Edm.DateTimeOffset": _NUMBER, "Edm.Guid": ("eq", "ne"),
    "Erp.Amount": _NUMBER, "Erp.Quantity": _NUMBER, "enum": ("eq", "ne", "in", "isnull", "notnull"),
    "state": ("eq", "ne", "ge", "le", "in"), "reference": ("eq", "contains", "isnull", "notnull"),
    "Edm.Binary": ("isnull", "notnull"), "custom": ("eq", "ne", "isnull", "notnull"),
}  # fmt: skip
_BARE = ("Edm.Int32", "Edm.Decimal", "Erp.Amount", "Erp.Quantity", "Edm.Boolean", "Edm.Date", "Edm.Guid")
#: Type → type of the input for its values.
_INPUTS = {"Edm.Int32": "number", "Edm.Decimal": "number", "Erp.Amount": "number", "Erp.Quantity": "number",
           "Edm.Date": "date", "Edm.DateTimeOffset": "datetime-local"}  # fmt: skip


def operator_names() -> dict[str, str]:
    """Operator → its name for people."""
    return {
        "contains": gettext("contains"), "startswith": gettext("starts with"), "endswith": gettext("ends with"),
        "eq": gettext("equals"), "ne": gettext("does not equal"), "gt": gettext("is more than"),
        "ge": gettext("is at least"), "lt": gettext("is less than"), "le": gettext("is at most"),
        "in": gettext("is one of"), "isnull": gettext("is empty"), "notnull": gettext("is not empty"),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A member of the set, or of the target of one of its references; then `path` is Customer/Number.

    type     the name of its type in the model; enum, state, reference, collection or custom
    detail   its type for people
    target   the set of a reference's or collection's entities
    members  of an enum
    """

    path: str
    type: str
    detail: str
    target: str = ""
    members: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its name without the reference."""
        return self.path.rpartition("/")[2]

    @property
    def reference(self) -> str:
        """The reference in its path; "" for members of the set itself."""
        return self.path.rpartition("/")[0]


@dataclass(slots=True)
class Condition:
    """A row of the filter; `number` names its fields."""

    number: int
    column: Column
    operator: str
    values: list[str]

    @property
    def operators(self) -> list[tuple[str, str]]:
        """(name, text) of the operators that fit the column."""
        names = operator_names()
        return [(name, names[name]) for name in _fitting(self.column)]

    @property
    def input_type(self) -> str:
        """The input type of the field for the value."""
        return _INPUTS.get(self.column.type, "text")

    @property
    def choices(self) -> tuple[str, ...]:
        """The values to choose from; none: any value may be entered."""
        return ("true", "false") if self.column.type == "Edm.Boolean" else self.column.members

    @property
    def needs_value(self) -> bool:
        """Whether the operator compares with a value."""
        return self.operator not in ("isnull", "notnull")


@dataclass(slots=True)
class Order:
    """A row of the order; `number` names its fields."""

    number: int
    column: Column
    direction: str


@dataclass(slots=True)
class Query:
    """The user's choices."""

    set_name: str
    columns: dict[str, Column]
    chosen: list[str]
    search: str
    join: str
    top: str
    skip: str
    count: bool
    conditions: list[Condition] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)

    @property
    def groups(self) -> list[tuple[Column | None, bool, list[tuple[Column, bool]]]]:
        """(reference, whether its group is open, (column, whether it is chosen)); the set's own members first."""
        wanted = self.search.lower()
        fitting = (each for each in self.columns.values() if wanted in each.path.lower() or each.path in self.chosen)
        groups: dict[str, list[tuple[Column, bool]]] = {}
        for each in islice(fitting, _MOST_COLUMNS):
            groups.setdefault(each.reference, []).append((each, each.path in self.chosen))
        return [
            (self.columns.get(name), bool(wanted) or any(is_chosen for _, is_chosen in group), group)
            for name, group in groups.items()
        ]

    @property
    def comparable(self) -> list[tuple[str, list[str]]]:
        """(set or reference, paths) of columns for conditions."""
        return self._paths(lambda column: column.type != "collection")

    @property
    def sortable(self) -> list[tuple[str, list[str]]]:
        """(set or reference, paths) of columns for the order."""
        return self._paths(lambda column: column.type not in ("collection", "reference"))

    def _paths(self, fits: Any) -> list[tuple[str, list[str]]]:
        groups: dict[str, list[str]] = {}
        for each in filter(fits, self.columns.values()):
            groups.setdefault(each.reference or self.set_name, []).append(each.path)
        return list(groups.items())

    @property
    def address(self) -> str:
        """The request's path and query, not percent-encoded."""
        parts = [*self._columns_asked(), *self._rows_asked()]
        return self.set_name + (f"?{'&'.join(parts)}" if parts else "")

    def _columns_asked(self) -> Iterable[str]:
        own: list[str] = []
        expanded: dict[str, list[str]] = {}
        for column in map(self.columns.__getitem__, self.chosen):
            if column.reference:
                expanded.setdefault(column.reference, []).append(column.label)
            elif column.type == "collection":
                expanded.setdefault(column.path, [])
            else:
                own.append(column.path)
        if own:
            yield f"$select={','.join([*own, *(name for name in expanded if name not in own)])}"
        if expanded:
            inner = (f"{name}($select={','.join(names)})" if names else name for name, names in expanded.items())
            yield f"$expand={','.join(inner)}"

    def _rows_asked(self) -> Iterable[str]:
        if filters := [text for each in self.conditions if (text := _condition(each))]:
            yield f"$filter={f' {self.join} '.join(filters)}"
        if self.orders:
            by = (each.column.path + (" desc" if each.direction == "desc" else "") for each in self.orders)
            yield f"$orderby={','.join(by)}"
        if self.top:
            yield f"$top={self.top}"
        if self.skip.strip("0"):
            yield f"$skip={self.skip}"
        if self.count:
            yield "$count=true"


def query_of(form: QueryDict, context: CallContext | None) -> Query | None:
    """The choices in the form after its actions; None without a known set. context None: of the standard model."""
    found = repositories.for_set(form.get("set", "").strip())
    shown = {each.set_name: each for each in sets_shown(context)}
    if found is None or found[0].set_name not in shown:
        return None
    nodes = {name: model_json.set_node(each, custom=context is not None) for name, each in shown.items()}
    columns = {each.path: each for each in _columns(nodes, found[0].set_name)}
    query = Query(
        set_name=found[0].set_name,
        columns=columns,
        chosen=[path for path in dict.fromkeys(form.getlist("columns")) if path in columns],
        search=form.get("search", ""),
        join="or" if form.get("join") == "or" else "and",
        top=_digits(form.get("top", "20")),
        skip=_digits(form.get("skip", "")),
        count="count" in form,
    )
    removed = {each for each in form.getlist("do") if each.startswith("remove-")}
    for number in _numbers(form, "path"):
        if f"remove-condition-{number}" not in removed and (column := columns.get(form.get(f"path-{number}", ""))):
            query.conditions.append(_condition_of(form, number, column))
    for number in _numbers(form, "by"):
        if f"remove-order-{number}" not in removed and (column := columns.get(form.get(f"by-{number}", ""))):
            query.orders.append(Order(number, column, form.get(f"direction-{number}", "asc")))
    _add(query, form.getlist("do"), found[0].code.name if found[0].code is not None else "")
    return query


def _add(query: Query, actions: list[str], code: str) -> None:
    """Add a condition on the code, or an order by the first column."""
    properties = [path for _, paths in query.sortable for path in paths]
    for action in actions:
        if action == "add-condition" and len(query.conditions) < MOST_ROWS:
            column = query.columns[code if code in query.columns else properties[0]]
            number = max((each.number for each in query.conditions), default=-1) + 1
            query.conditions.append(Condition(number, column, _fitting(column)[0], []))
        elif action == "add-order" and len(query.orders) < MOST_ROWS:
            number = max((each.number for each in query.orders), default=-1) + 1
            query.orders.append(Order(number, query.columns[properties[0]], "asc"))


def _condition_of(form: QueryDict, number: int, column: Column) -> Condition:
    """The condition N of the form. After a change of column, drops the value and an operator that does not fit."""
    operator, values = form.get(f"operator-{number}", ""), form.getlist(f"value-{number}")
    if operator not in _fitting(column) or column.path != form.get(f"was-{number}", column.path):
        operator, values = (operator if operator in _fitting(column) else _fitting(column)[0]), []
    result = Condition(number, column, operator, values)
    if result.choices and operator != "in":
        result.values = [value for value in values if value in result.choices][:1] or [result.choices[0]]
    return result


def _numbers(form: QueryDict, name: str) -> list[int]:
    return [int(each[1]) for key in form if (each := re.fullmatch(rf"{name}-(\d{{1,4}})", key))][:MOST_ROWS]


def _digits(text: str) -> str:
    return text if re.fullmatch(r"\d{1,9}", text) else ""


def _columns(nodes: dict[str, Node], set_name: str) -> Iterable[Column]:
    """Members of the set, then those of the targets of its references."""
    own = list(_members(nodes[set_name], ""))
    yield from own
    for each in own:
        if each.type == "reference" and each.target in nodes:
            away = _members(nodes[each.target], f"{each.path}/")
            yield from (column for column in away if column.type not in ("reference", "collection", "custom"))


def _members(node: Node, before: str) -> Iterable[Column]:
    for each in node["attributes"]:
        members = tuple(each.get("members", ()))
        kind = each["type"] if not members else "state" if each["type"].endswith("State") else "enum"
        required = " *" if each["required"] else ""
        yield Column(before + each["name"], kind, each["type"].removeprefix("Edm.") + required, members=members)
    for each in node["references"]:
        yield Column(before + each["name"], "reference", f"→ {each['entitySet']}", each["entitySet"])
    for each in node["collections"]:
        yield Column(before + each["name"], "collection", f"→ {each['entitySet']} [ ]", each["entitySet"])
    for each in node["customProperties"]:
        yield Column(before + each["name"], "custom", each["propertyType"])


def _fitting(column: Column) -> tuple[str, ...]:
    return _OPERATORS.get(column.type, ("eq", "ne"))


def _condition(condition: Condition) -> str:
    """The condition as $filter text; "" without a value."""
    column, operator, values = condition.column, condition.operator, [each for each in condition.values if each]
    if not condition.needs_value:
        return f"{column.path} {'eq' if operator == 'isnull' else 'ne'} null"
    if not values:
        return ""
    if operator in ("contains", "startswith", "endswith"):
        return f"{operator}({column.path},{_text(values[0])})"
    if operator == "in":
        return f"{column.path} in ({','.join(map(_text, values))})"
    left = f"{column.path}Value" if column.type in ("Erp.Amount", "Erp.Quantity") else column.path
    return f"{left} {operator} {_literal(column.type, values[0])}"


def _literal(kind: str, value: str) -> str:
    if kind in _BARE:
        return value.strip() or "null"
    if kind == "Edm.DateTimeOffset":
        try:
            moment = timezone.make_aware(datetime.datetime.fromisoformat(value))
        except ValueError:
            return "null"
        return f"{moment.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
    return _text(value)


def _text(value: str) -> str:
    return f"'{value.replace(chr(39), chr(39) * 2)}'"
