"""Tables: non-entity results of $apply, and aggregate functions as SQL.

A Table is a SELECT whose columns have OData paths ("Customer/Number", "Total"). Further transformations wrap it as a
derived table. Amounts and quantities have their currency or unit in a separate column.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from domain.query.base.bound import (
    INTEGER,
    REAL,
    Bound,
    Column,
    Order,
    Output,
    Sort,
    Source,
    ValueType,
)
from domain.query.base.scope import Scope
from domain.query.sql.compiler import Compiler
from domain.query.sql.fragments import Sql, compose, join, select_from
from domain.query.sql.joins import Block, Statement
from foundation import errors
from foundation.messages import TranslatableMessage as Message

METHODS = ("sum", "min", "max", "average", "countdistinct")


@dataclass(frozen=True, slots=True)
class Aggregate(Bound):
    """An aggregate function over the rows of a group; `$count` has no operand."""

    method: str
    operand: Bound | None


@dataclass(frozen=True, slots=True)
class ChildAggregate(Bound):
    """sum, min, max or $count over the owned collection of each row; an Aggregate over the rows takes the results."""

    method: str
    owner: Source
    back: Column
    variable: Source
    operand: Bound | None


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a table.

    path        nested as in JSON: ("SalesOrder", "Customer")
    measure     the currency's or unit's column, with its name ("Currency", "Unit")
    target_set  set of a reference's target
    is_date_part   a group key such as year(…), a text in OData 4.0
    control     type control information of the value (dynamic_types)
    is_declared    a property of $metadata, which gives its type
    """

    path: tuple[str, ...]
    output: Output
    measure: Output | None = None
    measure_name: str = ""
    target_set: str = ""
    target: str = ""
    is_date_part: bool = False
    control: str = ""
    is_declared: bool = False

    @property
    def name(self) -> str:
        """The path in expressions."""
        return "/".join(self.path)


def _refuse_name(name: str) -> NoReturn:
    raise errors.BadRequest(
        errors.BAD_QUERY_OPTION, "$apply", Message("it has two results with the name {0}", name), target=name
    )


class TableBlock(Block):
    """FROM one derived table."""

    def __init__(self, statement: Statement, table: Sql, alias: str) -> None:
        self.statement = statement
        self.outer = None
        self._aliases = {}
        self._joins = []
        self._from = compose(f"({{0}}) {alias}", table)


@dataclass(slots=True)
class Table:
    """A SELECT with its columns, not yet ordered. `orders` are over the columns."""

    sql: Sql
    number: int
    columns: list[ResultColumn]
    orders: list[Order] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raise BadRequest if two columns would be the same member of the result."""
        known: dict[tuple[str, ...], ResultColumn] = {}
        for column in self.columns:
            if known.setdefault(column.path, column) is not column:
                _refuse_name(column.name)
        for path in known:
            above = (known.get(path[:length]) for length in range(1, len(path)))
            # Members of a declared property stand in one object with it, as those of a reference do.
            if any(each is not None and not (each.target_set or each.is_declared) for each in above):
                _refuse_name("/".join(path))

    @property
    def alias(self) -> str:
        """The name of the derived table."""
        return f"q{self.number}"

    @property
    def scope(self) -> Scope:
        """The scope of names after the transformation."""
        outputs: dict[str, Output] = {}
        for each in self.columns:
            outputs[each.name] = each.output
            if each.measure is not None:
                outputs[f"{each.name}/Value"] = each.output
                outputs[f"{each.name}/{each.measure_name}"] = each.measure
        return Scope(None, outputs=outputs)

    def compiler(self, statement: Statement) -> Compiler:
        """A compiler of expressions over the table's columns."""
        return Compiler(TableBlock(statement, self.sql, self.alias), {self.number: self.alias})


def aggregate_type(method: str, operand: Bound) -> ValueType:
    """The type of the result."""
    if method == "countdistinct":
        return INTEGER
    if method == "average":
        return REAL
    if method == "sum":
        return operand.type if operand.type.scale is not None else REAL
    return operand.type


def _aggregate(compiler: Compiler, node: Aggregate) -> Sql:
    if node.operand is None:
        return Sql("COUNT(*)")
    value = compiler.value(node.operand)
    if node.method == "countdistinct":
        return compose("COUNT(DISTINCT {0})", compiler.key(node.operand))
    if node.method == "average":
        return _average(compiler, node.operand, value)
    if node.method in ("min", "max"):
        if node.operand.type.sort is Sort.GUID and compiler.dialect.vendor == "postgresql":
            return compose(f"{node.method.upper()}(({{0}})::text)::uuid", value)
        return compose(f"{node.method.upper()}({{0}})", compiler.dialect.collated(value, node.operand.type.sort))
    total = compose("SUM({0})", value)
    if not compiler.dialect.scaled_decimals and node.operand.type.integer:
        return compose("{0}::bigint", total)
    return total


def _average(compiler: Compiler, operand: Bound, value: Sql) -> Sql:
    if not compiler.dialect.scaled_decimals:
        return compose("AVG({0})", value)
    scale = operand.type.scale
    # The sum of scaled integers is exact, and only one division is rounded.
    return compose(f"(CAST(SUM({{0}}) AS REAL) / (COUNT({{1}}) * 1e{scale or 0}))", value, value)


def _child_aggregate(compiler: Compiler, node: ChildAggregate) -> Sql:
    inner, conditions = compiler.children(node.variable, node.owner, node.back)
    selected = Sql("COUNT(*)")
    if node.operand is not None:
        selected = compose(f"{node.method.upper()}({{0}})", inner.value(node.operand))
    return compose("({0})", select_from([selected], inner.block.from_sql(), conditions))


Compiler.register_value(Aggregate, _aggregate)
Compiler.register_value(ChildAggregate, _child_aggregate)


def count_of_rows() -> Aggregate:
    """$count over the rows of a group."""
    return Aggregate(INTEGER, False, "count", None)


def select_columns(compiler: Compiler, values: Sequence[tuple[str, Bound]], keys: Container[Bound]) -> Sql:
    """`a AS c0, b AS c1`; keys are the grouped columns."""
    result = ((compiler.key(bound) if bound in keys else compiler.value(bound), name) for name, bound in values)
    return join(", ", [value + Sql(f" AS {name}") for value, name in result])
