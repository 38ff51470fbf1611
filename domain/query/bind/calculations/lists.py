"""Operators on entities and lists: GETVALUE GETOBJVALUE FILTER SORT FIRST LIST COUNT SUM SELECT WHERE TOP ORDERBY."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext_noop as _

from domain.query.base.bound import INTEGER, STRING, Bound, ListValue, Order, Rows, Sort, all_of, fixed, python_operator
from domain.query.bind.calculations.operators import Operator, operators
from domain.query.bind.calculations.place import Place
from domain.query.bind.calculations.terms import Entity, Selection, Term, Value, among, is_true
from domain.query.bind.texts import as_scalar
from domain.query.bind.type_rules import by_number
from foundation.messages import TranslatableMessage as Message

#: Maximum of rows that TOP, LIST and FIRST read.
MAX_ITEMS = 1000


@operators.register
class GetValue(Operator):
    """GETVALUE(value)."""

    name = "GETVALUE"
    arity = 1, 1
    parameters = (_("value"),)

    def bind(self, at: Place) -> Term:
        return at.value(0)


@operators.register
class GetObjValue(Operator):
    """GETOBJVALUE(object, value evaluated on it); null without an object."""

    name = "GETOBJVALUE"
    arity = 2, 2
    parameters = (_("object"), _("value"))

    def bind(self, at: Place) -> Term:
        entity = at.entity(0)
        term = at.inside(entity.source).term(1)
        if isinstance(term, Rows) and entity.rows is None:
            return term
        if not isinstance(term, Value):
            at.refuse(
                Message("parameter {0} must be: {1}; {2} is not", 2, Message("a value"), str(at.row.parameters[1]))
            )
        return entity.seen(term)


def _check_in_database(at: Place, value: Bound) -> None:
    """Refuse an operator without SQL in a condition or order of rows, which the database evaluates."""
    if (found := python_operator(value)) is not None:
        at.refuse(Message("{0} cannot decide which rows a list has", found))


def narrowed(at: Place, rows: Rows, index: int) -> Rows:
    """The rows for which a condition holds; a condition that fails to evaluate does not hold."""
    if rows.limit is not None:
        at.refuse(Message("the list is cut by TOP already; put the condition inside TOP"))
    condition = at.inside(rows.variable).condition(index)
    _check_in_database(at, condition.bound)
    return replace(rows, predicate=all_of(rows.predicate, is_true(condition.bound)))


def ordered(at: Place, rows: Rows, index: int) -> Rows:
    """The rows ordered by a value, and by the direction that may follow."""
    if rows.limit is not None:
        at.refuse(Message("the list is cut by TOP already; put the order inside TOP"))
    direction = at.name(index + 1).upper() if at.count > index + 1 else "ASC"
    if direction not in ("ASC", "DESC"):
        at.refuse(
            Message("parameter {0} must be: {1}; {2} is not", index + 2, "ASC, DESC", str(at.row.parameters[index + 1]))
        )
    value = as_scalar(at.inside(rows.variable).value(index).bound)
    _check_in_database(at, value)
    if value.type.sort is Sort.ENUM:
        value = by_number(value)
    return replace(rows, orders=(Order(value, direction == "DESC"), *rows.orders))


@operators.register
class Filter(Operator):
    """FILTER(list, condition evaluated on each)."""

    name = "FILTER"
    arity = 2, 2
    parameters = (_("list"), _("condition"))

    def bind(self, at: Place) -> Term:
        return narrowed(at, at.rows(0), 1)


@operators.register
class Sorted(Operator):
    """SORT(list, value evaluated on each, ASC|DESC)."""

    name = "SORT"
    arity = 2, 3
    parameters = (_("list"), _("value"), _("direction"))

    def bind(self, at: Place) -> Term:
        return ordered(at, at.rows(0), 1)


@operators.register
class First(Operator):
    """FIRST(list): the first entity; null of an empty list."""

    name = "FIRST"
    arity = 1, 1
    parameters = (_("list"),)

    def bind(self, at: Place) -> Term:
        rows = at.rows(0)
        return Entity(rows.variable, replace(rows, limit=1))


@operators.register
class ListOf(Operator):
    """LIST(list, value, separator ", "): the texts of the first thousand, joined; null without any."""

    name = "LIST"
    arity = 2, 3
    parameters = (_("list"), _("value"), _("separator"))

    def bind(self, at: Place) -> Term:
        rows = at.rows(0)
        text = at.inside(rows.variable).text(1)
        separator = str(at.literal(2).value or "") if at.count > 2 else ", "
        rows = replace(rows, limit=min(rows.limit or MAX_ITEMS, MAX_ITEMS))
        return Value(ListValue(STRING, True, "list", rows, text.bound, separator), among(rows, text.failures))


@operators.register
class Count(Operator):
    """COUNT(list)."""

    name = "COUNT"
    arity = 1, 1
    parameters = (_("list"),)

    def bind(self, at: Place) -> Term:
        rows = at.rows(0)
        return Value(ListValue(INTEGER, False, "count", rows, fixed(1, INTEGER)))


@operators.register
class Sum(Operator):
    """SUM(list, value): without nulls; 0 of an empty list."""

    name = "SUM"
    arity = 2, 2
    parameters = (_("list"), _("value"))

    def bind(self, at: Place) -> Term:
        rows = at.rows(0)
        number = at.inside(rows.variable).number(1)
        return Value(ListValue(number.bound.type, False, "sum", rows, number.bound), among(rows, number.failures))


@operators.register
class Select(Operator):
    """SELECT(repository, clauses): its rows, narrowed, ordered and cut by WHERE, ORDERBY and TOP."""

    name = "SELECT"
    arity = 1, 3
    parameters = (_("repository"), _("clause"), _("clause"))

    def bind(self, at: Place) -> Term:
        rows = at.rows(0)
        # Conditions and orders refer to the rows of this list.
        inside = at.inside(rows.variable)
        for index in range(1, at.count):
            rows = inside.selection(index).apply(rows)
        return rows


@operators.register
class Where(Operator):
    """WHERE(condition, condition?, condition?): a clause of SELECT."""

    name = "WHERE"
    arity = 1, 3
    parameters = (_("condition"), _("condition"), _("condition"))

    def bind(self, at: Place) -> Term:
        def apply(rows: Rows) -> Rows:
            for index in range(at.count):
                rows = narrowed(at, rows, index)
            return rows

        return Selection(apply)


@operators.register
class OrderBy(Operator):
    """ORDERBY(value, ASC|DESC, inner clause?): a clause of SELECT."""

    name = "ORDERBY"
    arity = 1, 3
    parameters = (_("value"), _("direction"), _("clause"))

    def bind(self, at: Place) -> Term:
        def apply(rows: Rows) -> Rows:
            rows = at.selection(2).apply(rows) if at.count > 2 else rows
            return ordered(at, rows, 0)

        return Selection(apply)


@operators.register
class Top(Operator):
    """TOP(n, inner clause?): a clause of SELECT; n is a constant."""

    name = "TOP"
    arity = 1, 2
    parameters = (_("number"), _("clause"))

    def bind(self, at: Place) -> Term:
        number = at.integer(0, 1, MAX_ITEMS)

        def apply(rows: Rows) -> Rows:
            rows = at.selection(1).apply(rows) if at.count > 1 else rows
            if rows.limit is not None:
                at.refuse(Message("the list is cut by TOP already"))
            return replace(rows, limit=number)

        return Selection(apply)
