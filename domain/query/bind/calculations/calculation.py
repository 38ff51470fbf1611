"""Binds a calculated attribute: the rows of its definition on an entity, with types and limits (spec 10.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from domain.model.attributes import Child
from domain.model.calculated_attributes import Definition
from domain.query.base.bound import (
    BOOL,
    DATE,
    DATETIME,
    GUID,
    INTEGER,
    REAL,
    STRING,
    Bound,
    Column,
    Order,
    Rows,
    Scripted,
    ScriptFailed,
    Sort,
    Source,
)
from domain.query.base.scope import Scope
from domain.query.bind.calculations.operators import Operator, operators
from domain.query.bind.calculations.place import Place
from domain.query.bind.calculations.terms import Term, Value
from domain.query.bind.expression_binder import ExpressionBinder
from domain.query.bind.sources import column
from domain.query.bind.texts import as_scalar
from domain.syntax.ast import Literal, NameStep, Path
from domain.syntax.calculations import ExpressionRow
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Limits of a definition: number of rows, depth of rows that refer to each other, number of bound rows in total.
MAX_ROWS, MAX_DEPTH, MAX_EVALUATIONS = 200, 40, 1000
#: attribute_scripts.VALUE_TYPES → type; numbers of scripts are doubles.
_SCRIPT_TYPES = {
    "String": STRING,
    "Boolean": BOOL,
    "Int32": INTEGER,
    "Decimal": REAL,
    "Date": DATE,
    "DateTime": DATETIME,
    "Guid": GUID,
}


class Calculation:
    """One calculated attribute on one row variable."""

    def __init__(self, binder: ExpressionBinder, definition: Definition) -> None:
        self.binder = binder
        self.definition = definition
        self._evaluations = 0
        self._rows: dict[int, ExpressionRow] = {}
        if len(definition.rows) > MAX_ROWS:
            self.refuse(None, Message("it has more than {0} rows", MAX_ROWS))
        for row in definition.rows:
            if row.number in self._rows:
                self.refuse(row.number, Message("two rows have this number"))
            self._rows[row.number] = row

    @property
    def api_name(self) -> str:
        """The attribute's name in the API."""
        return self.definition.api_name

    def check_every_row(self) -> None:
        """Check the operator and the number of parameters of every row, including rows that the value does not need."""
        for row in self.definition.rows:
            self._check_form(row)

    def result(self, source: Source) -> Value:
        """The value of the starting row, or of the script."""
        if self.definition.script is not None:
            return self._scripted(source)
        start = self.definition.start
        term = self.row(start, source, ())
        at = Place(self, self._rows[start], source, ())
        if not isinstance(term, Value):
            at.refuse(Message("its result is no single value; take a value of it with GETOBJVALUE, COUNT, SUM or LIST"))
        bound = as_scalar(term.bound)
        if bound.type.sort in (Sort.NULL, Sort.BINARY, Sort.SECRET):
            at.refuse(Message("its type cannot be determined"))
        if bound.type.sort is Sort.REFERENCE:
            bound = replace(bound, type=GUID)
        return replace(term, bound=bound)

    def _scripted(self, source: Source) -> Value:
        key = Column(GUID, source.nullable, source, source.repository.id)
        value_type = _SCRIPT_TYPES[self.definition.value_type]
        script = Scripted(value_type, True, source.repository.name, self.api_name, key)
        # A script has no rows (number 0); its failure is reported with the script's own message.
        return Value(script, ((0, ScriptFailed(BOOL, False, script)),))

    def row(self, number: int, this: Source, frames: tuple[tuple[int, Source], ...]) -> Term:
        """The result of a row on an entity."""
        row = self._rows.get(number)
        if row is None:
            self.refuse(number, Message("there is no such row"))
        if any(number == known and this == source for known, source in frames):
            self.refuse(number, Message("the row refers to itself"))
        self._evaluations += 1
        if len(frames) >= MAX_DEPTH:
            self.refuse(number, Message("rows refer to each other more than {0} levels deep", MAX_DEPTH))
        if self._evaluations > MAX_EVALUATIONS:
            self.refuse(number, Message("written out, the definition has more than {0} rows", MAX_EVALUATIONS))
        operator = self._check_form(row)
        return operator.bind(Place(self, row, this, (*frames, (number, this))))

    def _check_form(self, row: ExpressionRow) -> Operator:
        operator = operators.get(row.operator)
        if operator is None:
            self.refuse(row.number, Message("there is no operator {0}", row.operator))
        low, high = operator.arity
        if not low <= len(row.parameters) <= high:
            allowed = str(low) if low == high else Message("{0} to {1}", low, high)
            self.refuse(
                row.number, Message("{0} needs parameters: {1}; it has {2}", row.operator, allowed, len(row.parameters))
            )
        return operator

    def refuse(self, number: int | None, reason: str) -> NoReturn:
        """Raise CALCULATION_INVALID for a row, or for the definition."""
        located = reason if number is None else Message("row {0}: {1}", number, reason)
        raise errors.BadRequest(
            errors.CALCULATION_INVALID, self.definition.name, located, target=self.definition.api_name
        )

    # --- names ----------------------------------------------------------------------------------------------------

    def literal(self, literal: Literal) -> Bound:
        """A constant, whose type another operand may still determine."""
        return self.binder.value(literal, Scope(None))

    def member(self, number: int, source: Source, name: str) -> Value | None:
        """An attribute, a custom property or another calculated attribute of an entity; None for another name."""
        repository = source.repository
        found = self.binder.calculated(source, name)
        if found is not None:
            # A failure inside another attribute counts as a failure of the row that uses it.
            return Value(found.bound, tuple((number, failed) for _, failed in found.failures))
        behind = repository.attribute_behind(name)
        if behind is not None:
            bound = column(source, behind) if behind.is_measured else self.binder.member(source, behind.name)
            return Value(replace(bound, type=GUID) if behind.is_reference and isinstance(bound, Bound) else bound)
        if repository.collection(name) is not None:
            return None
        bound = self.binder.member(source, name)
        return Value(bound) if isinstance(bound, Bound) else None

    def children(self, source: Source, child: Child) -> Rows:
        """The owned rows that the caller may see."""
        rows = self.binder.rows(source, child)
        return self.in_order(Rows(rows.variable, source, rows.back))

    def in_order(self, rows: Rows) -> Rows:
        """The rows in the repository's own order, then by key."""
        variable = rows.variable
        orders: list[Order] = []
        for name in variable.repository.ordering:
            steps = tuple(NameStep(part) for part in name.lstrip("-").replace(".", "/").split("/"))
            orders.append(Order(self.binder.scalar(Path(steps), Scope(variable)), name.startswith("-")))
        return replace(rows, orders=(*orders, Order(column(variable, variable.repository.id))))
