"""Compiles values of lists (base.bound.ListValue) to scalar subqueries; operators without SQL are refused."""

from __future__ import annotations

from typing import NoReturn

from domain.query.base.bound import Computed, ListValue, Order, Rows, Scripted, ScriptFailed
from domain.query.sql.compiler import Compiler
from domain.query.sql.fragments import Sql, compose, join, select_from
from foundation import errors


def _list_value(compiler: Compiler, node: ListValue) -> Sql:
    rows = node.rows
    inner, conditions = _rows(compiler, rows)
    value = inner.value(node.value)
    if node.function == "first":
        # FROM is compiled last, because the order may add joins.
        return _page(inner, rows, [value], conditions, "({0})")
    if rows.limit is None and node.function != "list":
        return compose("({0})", select_from([_aggregate(node, value)], inner.block.from_sql(), conditions))
    alias = compiler.block.statement.alias("l")
    columns = [compose("{0} AS v", value)]
    aggregated = _aggregate(node, Sql(f"{alias}.v"))
    if node.function == "list":
        separator = compiler.dialect.text_parameter(node.separator)
        if compiler.dialect.vendor == "postgresql":
            numbered = join("", [Sql("row_number() OVER (ORDER BY "), _order(inner, rows), Sql(") AS n")])
            columns.append(numbered)
            aggregated = compose(f"string_agg({alias}.v, {{0}} ORDER BY {alias}.n)", separator)
        else:
            aggregated = compose(f"group_concat({alias}.v, {{0}})", separator)
    page = _page(inner, rows, columns, conditions, "({0}) " + alias)
    return compose("(SELECT {0} FROM {1})", aggregated, page)


def _aggregate(node: ListValue, value: Sql) -> Sql:
    return compose("coalesce(sum({0}), 0)", value) if node.function == "sum" else Sql("count(*)")


def _rows(compiler: Compiler, rows: Rows) -> tuple[Compiler, list[Sql]]:
    if rows.owner is not None and rows.back is not None:
        inner, conditions = compiler.children(rows.variable, rows.owner, rows.back)
    else:
        inner, conditions = compiler.subquery(rows.variable)
    if rows.predicate is not None:
        conditions.append(inner.predicate(rows.predicate))
    return inner, conditions


def _order(inner: Compiler, rows: Rows) -> Sql:
    return join(", ", [order_key(inner, order) for order in rows.orders])


def order_key(inner: Compiler, order: Order) -> Sql:
    bound = order.expression
    return inner.dialect.order(
        inner.key(bound), is_descending=order.is_descending, nullable=bound.nullable, sort=bound.type.sort
    )


def _page(inner: Compiler, rows: Rows, columns: list[Sql], conditions: list[Sql], template: str) -> Sql:
    order = _order(inner, rows)
    limit = Sql("" if rows.limit is None else f" LIMIT {rows.limit}")
    return compose(template, select_from(columns, inner.block.from_sql(), conditions, [order]) + limit)


def _computed(compiler: Compiler, node: Computed) -> NoReturn:
    raise errors.BadRequest(errors.CALCULATION_NOT_QUERYABLE, node.attribute, node.operator, target=node.attribute)


def _scripted(compiler: Compiler, node: Scripted) -> NoReturn:
    raise errors.BadRequest(errors.CALCULATION_NOT_QUERYABLE, node.attribute, "JavaScript", target=node.attribute)


def _script_failed(compiler: Compiler, node: ScriptFailed, exact: bool) -> NoReturn:
    _scripted(compiler, node.script)


Compiler.register_value(ListValue, _list_value)
Compiler.register_value(Scripted, _scripted)
Compiler.register_predicate(ScriptFailed, _script_failed)
Compiler.register_value(Computed, _computed)
