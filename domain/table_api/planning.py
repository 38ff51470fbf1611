"""Plans a read of a table: query options → TableQuery, with the rights of the caller.

The options are translated to the repository's attributes and bound and compiled by the read engine, so permissions and
row policies are those of the Domain API. Without $orderby, $top and $skip the rows are not sorted; otherwise they are
ordered, and ties broken by Id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import quote

from domain.query.api.cache import Prepared, plan_for, prepare
from domain.query.base.access import Access
from domain.query.base.bound import STRING, Bound, Call, Order, Sort
from domain.query.base.representation import ShapeKey
from domain.query.base.scope import Scope, entity_scope
from domain.query.bind.paths import bind_path
from domain.query.bind.texts import as_scalar
from domain.query.bind.type_rules import by_number
from domain.query.plan.planner import Planner
from domain.query.run.execute import Statement
from domain.query.run.paging import OrderKey, make_token, order_fingerprint, read_token, seek_condition
from domain.query.sql.compiler import Compiler, new_statement
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Param, Run, Sql, compose, join, run_limit, run_skip, select_from
from domain.syntax import ast
from domain.table_api.catalogue import Column, Table
from domain.table_api.property_values import KEY, property_values
from domain.table_api.table_query import TableColumn, TableQuery
from domain.table_api.translation import check_options, selected_columns, translated, unknown_table
from identity.context import CallContext

#: A $top from this value on means all rows, which need no order: clients send $top=500000000 for "all".
_ALL_ROWS = 100_000_000
#: LIMIT of a read without one; SQLite takes no OFFSET alone.
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Paging:
    """The caller's preferred page size, and the URL of the request without the options of paging."""

    size: int | None
    base: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """The part of a read that does not depend on its parameter values.

    columns    of the answer, and as SQL in `selected`
    keys       of the order; () for none
    seeks      the keys as output columns whose values can be sent back as parameters
    """

    dialect: Dialect
    columns: tuple[TableColumn, ...]
    selected: tuple[Sql, ...]
    body: Sql
    where: tuple[Sql, ...]
    keys: tuple[OrderKey, ...]
    seeks: tuple[Sql, ...]
    order: Sql
    fingerprint: str

    def statement(self, columns: Sequence[Sql], conditions: Sequence[Sql], limit: Sql) -> Statement:
        """SELECT of the columns, with further conditions, in the plan's order."""
        order = [self.order] if self.keys else []
        text = select_from(columns, self.body, [*self.where, *conditions], order) + limit
        return Statement.of(text, self.dialect)


def readable(table: Table, ctx: CallContext) -> bool:
    """Whether the caller may read the table. Every caller may read the property values of visible entities."""
    return table.repository is None or Access(ctx.permissions).readable(table.repository)


def column_names(table: Table, options: ast.QueryOptions) -> list[str]:
    """The names of the columns that $select names. Raises BadRequest."""
    return [column.name for column in selected_columns(options, table)]


def plan(
    table: Table, options: ast.QueryOptions, ctx: CallContext, *, context: str = "", paging: Paging | None = None
) -> TableQuery:
    """The read that answers the options. Raises BadRequest, NotSupported, and NotFound for a hidden table.

    With paging, queries the keys of the page's last row first, so that concurrent inserts do not move the end of the
    page.
    """
    is_paged = paging is not None and (paging.size is not None or options.skiptoken is not None)
    prepared = _prepared(options)
    made = _plan_for(table, prepared, ctx, is_ordered=is_paged)
    run = Run(prepared.values, ctx)
    page = _page(made, prepared, run, paging) if is_paged and paging is not None else _whole(prepared, run)
    text = made.statement(made.selected, page.conditions(made), page.limit)
    native, parameters = _native(text, run)
    return TableQuery(
        vendor=made.dialect.vendor,
        text=native,
        parameters=parameters,
        columns=made.columns,
        context=context,
        counting=_native(_counting_plan(table, prepared, ctx), run) if prepared.count else None,
        next_link=page.next_link,
    )


def count(table: Table, options: ast.QueryOptions, ctx: CallContext) -> int:
    """The number of rows that match $filter. Raises as `plan`."""
    prepared = _prepared(replace(options, select=(), orderby=(), top=None, skip=None))
    return int(_counting_plan(table, prepared, ctx).fetch(Run(prepared.values, ctx))[0][0])


def _native(statement: Statement, run: Run) -> tuple[str, tuple[Any, ...]]:
    return statement.native, tuple(param(run) for param in statement.params)


def _counting_plan(table: Table, prepared: Prepared, ctx: CallContext) -> Statement:
    make = partial(_counting, table, prepared.shape.options, ctx)
    return plan_for(("table count", table.name, prepared.shape), ctx, None, make)


def _prepared(options: ast.QueryOptions) -> Prepared:
    check_options(options)
    return prepare(options)


def _plan_for(table: Table, prepared: Prepared, ctx: CallContext, *, is_ordered: bool) -> _Plan:
    top = prepared.top
    cuts = bool(prepared.skip) or (top is not None and top < _ALL_ROWS)
    is_ordered = is_ordered or cuts
    make = partial(_plan, table, prepared.shape.options, ctx, is_ordered=is_ordered)
    return plan_for(("table", table.name, prepared.shape, is_ordered), ctx, None, make)


# --- pages --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Page:
    """The rows of one page.

    after, until   order keys of the last row of the previous page, and of the page's own last row
    """

    limit: Sql
    after: tuple[Any, ...] | None = None
    until: tuple[Any, ...] | None = None
    next_link: str = ""

    def conditions(self, made: _Plan) -> list[Sql]:
        """The page as conditions."""
        found = [] if self.after is None else [_beyond(made, self.after)]
        if self.until is not None:
            # IS NOT TRUE: the condition is null if a key is null, and then the row is not beyond.
            found.append(compose("({0}) IS NOT TRUE", _beyond(made, self.until)))
        return found


def _beyond(made: _Plan, row: tuple[Any, ...]) -> Sql:
    """The condition that a row comes after the one with these order keys."""
    condition = seek_condition(made.keys, tuple(value is None for value in row), made.dialect)
    return Sql(condition.text, tuple(partial(_sought, param, row) for param in condition.params))


def _sought(param: Param, row: tuple[Any, ...], run: Run) -> Any:
    return param(replace(run, seek=row))


def _whole(prepared: Prepared, run: Run) -> _Page:
    """All rows within $top and $skip, as one page."""
    if prepared.top is None and not prepared.skip:
        return _Page(Sql(""))
    run.limit = _NO_LIMIT if prepared.top is None else prepared.top
    run.skip = prepared.skip or 0
    return _Page(Sql(" LIMIT %s OFFSET %s", (run_limit, run_skip)) if run.skip else Sql(" LIMIT %s", (run_limit,)))


def _page(made: _Plan, prepared: Prepared, run: Run, paging: Paging) -> _Page:
    size, remaining, skip = paging.size or 0, prepared.top, prepared.skip or 0
    after: tuple[Any, ...] | None = None
    if prepared.skiptoken is not None:
        remaining, (size, *seek) = read_token(made.fingerprint, prepared.skiptoken, len(made.keys) + 1)
        after, skip = tuple(seek), 0
    size = size if remaining is None else min(size, remaining)
    run.limit, run.skip = size, skip
    limit = Sql(" LIMIT %s OFFSET %s", (run_limit, run_skip)) if skip else Sql(" LIMIT %s", (run_limit,))
    page = _Page(limit, after)
    if size == 0 or size == remaining:
        return page
    # The last row of this page, and the first of the next if there is one.
    ends = made.statement(made.seeks, page.conditions(made), Sql(f" LIMIT 2 OFFSET {skip + size - 1}")).fetch(run)
    if len(ends) < 2:
        return page
    last = tuple(ends[0])
    token = make_token(made.fingerprint, (size, *last), None if remaining is None else remaining - size)
    link = f"{paging.base}{'&' if '?' in paging.base else '?'}$skiptoken={quote(token)}"
    run.limit = _NO_LIMIT
    return _Page(limit if skip else Sql(""), after, last, link)


# --- planning -----------------------------------------------------------------------------------------------------


def _planner(table: Table, options: ast.QueryOptions, ctx: CallContext) -> tuple[Planner, ast.QueryOptions]:
    """A planner for translated options, and these. Raises NotFound for a table that is hidden from the caller."""
    if not readable(table, ctx):
        raise unknown_table(table.name)
    over_attributes = translated(options, table)
    aliases = {alias.name: alias.value for alias in over_attributes.aliases}
    return Planner(Access.of(ctx), ShapeKey(), aliases), over_attributes


def _counting(table: Table, options: ast.QueryOptions, ctx: CallContext) -> Statement:
    planner, over_attributes = _planner(table, options, ctx)
    if table.repository is not None:
        return planner.count(table.repository, over_attributes)
    relation = property_values(planner)
    compiler = relation.compiler(new_statement(planner.dialect, planner.access))
    predicates = [compiler.predicate(each) for each in _where(planner, over_attributes, relation.scope)]
    return Statement.of(select_from([Sql("COUNT(*)")], compiler.block.from_sql(), predicates), planner.dialect)


def _plan(table: Table, options: ast.QueryOptions, ctx: CallContext, *, is_ordered: bool) -> _Plan:
    planner, over_attributes = _planner(table, options, ctx)
    columns = selected_columns(options, table)
    is_ordered = is_ordered or bool(options.orderby)
    orders: Sequence[Order] = ()
    if table.repository is None:
        relation = property_values(planner)
        scope = relation.scope
        where = _where(planner, over_attributes, scope)
        if is_ordered:
            orders = (*_orders(planner, over_attributes, scope), *(Order(scope.outputs[name]) for name in KEY))
        values: list[Bound] = [scope.outputs[column.name] for column in columns]
        compiler = relation.compiler(new_statement(planner.dialect, planner.access))
        return _compiled(planner, compiler, table.name, columns, values, where, orders)
    source = planner.root(table.repository)
    scope = entity_scope(source)
    where = planner.where(source, over_attributes, scope, ())
    if is_ordered:
        # The default order is by key: the repository's `ordering` is for people.
        orders = planner.orders(source, over_attributes, scope, [Order(_bound(planner, ("Id",), scope))])
    values = [_bound(planner, column.path, scope) for column in columns]
    compiler = Compiler(planner.block(source))
    return _compiled(planner, compiler, table.name, columns, values, where, orders)


def _where(planner: Planner, options: ast.QueryOptions, scope: Scope) -> list[Bound]:
    return [] if options.filter is None else [planner.binder.predicate(options.filter, scope)]


def _orders(planner: Planner, options: ast.QueryOptions, scope: Scope) -> list[Order]:
    return [Order(planner.binder.scalar(item.expression, scope), item.is_descending) for item in options.orderby]


def _bound(planner: Planner, path: Sequence[str], scope: Scope) -> Bound:
    """The value of a column, in the form of tables."""
    value = bind_path(planner.binder, tuple(ast.NameStep(name) for name in path), scope, 0)
    if value.type.sort is Sort.ENUM:
        return by_number(value)
    if value.type.sort is Sort.CUSTOM:
        return as_scalar(value)
    if value.type.sort in (Sort.TIME, Sort.DURATION):
        return Call(STRING, value.nullable, "to_text", (value,))
    return value


def _compiled(
    planner: Planner,
    compiler: Compiler,
    name: str,
    columns: Sequence[Column],
    values: Sequence[Bound],
    where: Sequence[Bound],
    orders: Sequence[Order],
) -> _Plan:
    dialect = planner.dialect
    selected = tuple(dialect.output(compiler.value(value), value.type) for value in values)
    predicates = tuple(compiler.predicate(each) for each in where)
    keys = tuple(planner.order_key(compiler, order) for order in orders)
    return _Plan(
        dialect=dialect,
        columns=tuple(_described(column, value) for column, value in zip(columns, values, strict=True)),
        selected=selected,
        body=compiler.block.from_sql(),
        where=predicates,
        keys=keys,
        seeks=tuple(planner.seek_output(key) for key in keys),
        order=join(", ", [planner.order_text(key) for key in keys]),
        fingerprint=order_fingerprint(name, keys),
    )


def _described(column: Column, value: Bound) -> TableColumn:
    """The column of the response: a reference is nullable if its target may be hidden."""
    return TableColumn(
        column.name,
        column.type,
        value.nullable or column.is_nullable,
        column.precision,
        column.scale,
        column.max_length,
    )
