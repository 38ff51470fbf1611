"""$apply (OData Extension for Data Aggregation 4.0; spec 02, 2.2): transformations as nested SELECTs.

Executed in the database: filter, search, compute, orderby, top, skip, identity, groupby, aggregate, concat,
topcount/bottomcount, topsum/bottomsum, toppercent/bottompercent, rollup, and the platform's expandgroup and yearmonth.
The rest of the extension (hierarchies, joins, nesting, custom aggregates) is answered with 501.

- `groupby((A,B),aggregate(...))`; nested groupby groups by all of them; `groupby((A))` gives distinct values.
- `aggregate(Amount with sum as T)` of an amount or quantity groups by its currency or unit as well and gives
  `{"Value", "Currency"}`; `AmountValue` or `Amount/Value` is the number without regard to the currency.
- A grouping by `yearmonth(Date)` is named `yearmonth`, unless `as` names it.
- Rows without keys are paged by number, in an order made total by all their columns.

While rows are still entities (after filter, search, compute, top …), they are read as entities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any

from domain.query.base.bound import BOOL, Bound, Fixed, Input, Order, Output, Sort, Source
from domain.query.base.scope import Scope
from domain.query.bind.expression_binder import mismatch
from domain.query.bind.search import bind_search
from domain.query.bind.type_rules import by_number
from domain.query.plan.aggregation import ResultColumn, Table, select_columns
from domain.query.plan.dynamic_types import type_control
from domain.query.plan.groupby import Group, bind_aggregates, bind_elements
from domain.query.plan.key_conditions import LeadingKeys, LimitedKeys, Share
from domain.query.plan.planner import Planner
from domain.query.sql.compiler import Compiler, new_statement
from domain.query.sql.fragments import Sql, compose, join, select_from
from domain.query.sql.joins import Block
from domain.syntax import ast
from foundation import errors
from foundation.messages import TranslatableMessage as Message

_MOST_ROWS = 2**62


@dataclass(slots=True)
class Entities:
    """A stage whose rows are entities. limit is (skip, top); later filters apply to the limited rows only."""

    source: Source
    scope: Scope
    where: list[Bound]
    orders: list[Order] = field(default_factory=list)
    limit: tuple[ast.Constant | None, ast.Constant | None] | None = None
    applied: ApplyPlanner | None = None

    def unlimited(self) -> Entities:
        """The same rows, in the same order, by a condition on their keys instead of a limit."""
        if self.limit is None or self.applied is None:
            return self
        limit = partial(self.applied.limit_text, *self.limit)
        return replace(self, where=[LimitedKeys(BOOL, False, self, self.applied.planner, limit)], limit=None)


Stage = Entities | Table


def known_columns(stage: Stage) -> Mapping[str, ResultColumn]:
    """The columns of a table by name; entities have none."""
    return {} if isinstance(stage, Entities) else {column.name: column for column in stage.columns}


class ApplyPlanner:
    """Applies transformations one after another."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.binder = planner.binder
        self.statement = new_statement(planner.dialect, planner.access)
        self.group_expansions: list[ast.ExpandItem] = []
        self._tables = 0

    def run(self, stage: Stage, transformations: Sequence[ast.Transformation]) -> Stage:
        """The stage after all transformations."""
        for each in transformations:
            stage = self.step(stage, each)
        return stage

    def step(self, stage: Stage, each: ast.Transformation) -> Stage:
        """The stage after one transformation."""
        match each:
            case ast.IdentityTransformation():
                return stage
            case ast.FilterTransformation():
                return self.filtered(stage, each.predicate)
            case ast.SearchTransformation():
                if not isinstance(stage, Entities):
                    raise errors.NotSupported(Message("search behind groupby or aggregate"))
                stage = stage.unlimited()
                return replace(stage, where=[*stage.where, bind_search(self.binder, each.search, stage.source)])
            case ast.ComputeTransformation():
                return self.computed(stage, each.items)
            case ast.OrderByTransformation():
                return self.ordered(stage, each.items)
            case ast.TopTransformation():
                return self.limited(stage, None, each.count)
            case ast.SkipTransformation():
                return self.limited(stage, each.count, None)
            case ast.RankTransformation():
                return self.ranked(stage, each)
            case ast.AggregateTransformation():
                return self.grouped(stage, Group(), each.items)
            case ast.GroupByTransformation():
                return self.grouped_by(stage, each)
            case ast.ExpandGroupTransformation():
                self.group_expansions.extend(each.items)
                return stage
            case ast.JoinTransformation():
                raise errors.NotSupported(Message("{0} in $apply", "outerjoin" if each.is_outer else "join"))
            case ast.NestTransformation():
                raise errors.NotSupported(Message("{0} in $apply", "nest" if each.path is None else "addnested"))
        name = getattr(each, "name", "") or type(each).__name__.removesuffix("Transformation").lower()
        raise errors.NotSupported(Message("{0} in $apply", name))

    # --- steps ----------------------------------------------------------------------------------------------------

    def filtered(self, stage: Stage, predicate: ast.Expression) -> Stage:
        if isinstance(stage, Entities):
            stage = stage.unlimited()
            return replace(stage, where=[*stage.where, self.binder.predicate(predicate, stage.scope)])
        compiler = stage.compiler(self.statement)
        condition = compiler.predicate(self.binder.predicate(predicate, stage.scope))
        return self._wrapped(stage, compiler, where=condition)

    def computed(self, stage: Stage, items: Sequence[ast.ComputeItem]) -> Stage:
        if isinstance(stage, Entities):
            return replace(stage, scope=self.binder.compute(items, stage.scope))
        for item in items:
            compiler = stage.compiler(self.statement)
            bound = self.binder.scalar(item.expression, stage.scope)
            stage = self._wrapped(stage, compiler, extra=[((item.alias,), bound)])
        return stage

    def ordered(self, stage: Stage, items: Sequence[ast.OrderItem]) -> Stage:
        if isinstance(stage, Entities) and stage.limit is not None:
            stage = stage.unlimited()
        scope = stage.scope
        orders = [Order(self.binder.scalar(item.expression, scope), item.is_descending) for item in items]
        return replace(stage, orders=orders)

    def limited(self, stage: Stage, skip: ast.Constant | None, top: ast.Constant | None) -> Stage:
        if isinstance(stage, Entities):
            if stage.limit is not None and not (stage.limit[1] is None and skip is None):
                stage = stage.unlimited()
            earlier = stage.limit[0] if stage.limit is not None else None
            return replace(stage, limit=(skip if skip is not None else earlier, top), applied=self)
        compiler = stage.compiler(self.statement)
        order = self.table_order(stage, compiler)
        return self._wrapped(stage, compiler, order=order, limit=self.limit_text(skip, top, compiler))

    def ranked(self, stage: Stage, each: ast.RankTransformation) -> Stage:
        """topcount … bottompercent: the rows with the greatest or least values."""
        scope = stage.scope
        value = self.binder.scalar(each.value, scope)
        order = Order(value, each.name.startswith("top"))
        if each.name in ("topcount", "bottomcount"):
            if not isinstance(each.amount, ast.Literal | ast.Slot):
                raise errors.NotSupported(Message("{0} with a number that is not a literal", each.name))
            return self.limited(replace(stage, orders=[order]), None, each.amount)
        amount = self.binder.scalar(each.amount, scope)
        for operand, given in ((each.amount, amount), (each.value, value)):
            if given.type.sort is not Sort.NUMBER:
                raise mismatch(operand.position, Message("a number is needed here, not {0}", given.type))
        share = Share(order, amount, is_percent=each.name.endswith("percent"))
        if isinstance(stage, Entities):
            stage = stage.unlimited()
            return replace(stage, where=[LeadingKeys(BOOL, False, stage, share, self.planner)], orders=[order])
        compiler = stage.compiler(self.statement)
        ties = self.table_order(replace(stage, orders=[]), compiler)
        inner = self._wrapped(stage, compiler, raw=[share.holds(compiler, ties) + Sql(" AS keep")])
        outer = inner.compiler(self.statement)
        return self._wrapped(inner, outer, where=Sql(f"{inner.alias}.keep"))

    def grouped_by(self, stage: Stage, each: ast.GroupByTransformation) -> Stage:
        elements = list(each.elements)
        apply = list(each.apply)
        while len(apply) == 1 and isinstance(apply[0], ast.GroupByTransformation):
            elements += apply[0].elements
            apply = list(apply[0].apply)
        items: tuple[ast.AggregateItem, ...] = ()
        if apply and isinstance(apply[0], ast.AggregateTransformation):
            items = apply[0].items
            rest = apply[1:]
            if rest and not all(
                isinstance(step, ast.ComputeTransformation | ast.FilterTransformation) for step in rest
            ):
                raise errors.NotSupported(Message("groupby with more than aggregate, filter and compute inside"))
        elif apply:
            raise errors.NotSupported(Message("groupby with a transformation other than aggregate inside"))
        else:
            rest = []
        if isinstance(stage, Entities):
            stage = stage.unlimited()
        if any(isinstance(element, ast.Rollup) for element in elements):
            return self.run(self._rolled_up(stage, elements, items), rest)
        group = bind_elements(self.binder, elements, stage.scope, known_columns(stage))
        return self.run(self.grouped(stage, group, items), rest)

    def grouped(self, stage: Stage, group: Group, items: Sequence[ast.AggregateItem]) -> Table:
        """GROUP BY with aggregates; without elements and items, only one row remains."""
        if isinstance(stage, Entities):
            stage = stage.unlimited()
        aggregates = bind_aggregates(self.binder, items, stage.scope, group, known_columns(stage))
        if isinstance(stage, Entities):
            compiler = Compiler(Block(self.statement, stage.source))
            where = [compiler.predicate(each) for each in stage.where]
        else:
            compiler, where = stage.compiler(self.statement), []
        number = self._next()
        columns: list[ResultColumn] = []
        values: list[tuple[str, Bound]] = []

        def put(bound: Bound) -> Output:
            name = f"c{len(values)}"
            values.append((name, bound))
            return Output(bound.type, bound.nullable, name, number)

        keys: dict[Bound, Output] = {}
        for element in group.elements:
            keys[element.value] = output = put(element.value)
            measure = None
            if element.measure is not None:
                measure = keys.get(element.measure) or keys.setdefault(element.measure, put(element.measure))
            columns.append(
                ResultColumn(
                    element.path,
                    output,
                    measure,
                    element.measure_name,
                    element.target_set,
                    element.target,
                    element.is_date_part,
                    element.control or type_control(element.value),
                    element.is_declared,
                )
            )
        for implied in group.implied:
            if implied not in keys:
                keys[implied] = put(implied)
        for item in aggregates:
            measure = keys.get(item.measure) if item.measure is not None else None
            output, control = put(item.value), type_control(item.value)
            columns.append(ResultColumn((item.alias,), output, measure, item.measure_name, control=control))
        if not values:
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$apply", Message("aggregate has nothing to compute"))
        selected = [select_columns(compiler, values, keys)]
        text = select_from(selected, compiler.block.from_sql(), where)
        if keys:
            # GROUP BY positions: the database would not recognize an expression with parameters as the same.
            positions = [str(index + 1) for index, (_, bound) in enumerate(values) if bound in keys]
            text = text + Sql(" GROUP BY " + ", ".join(positions))
        return Table(text, number, columns)

    def _rolled_up(
        self, stage: Stage, elements: Sequence[ast.GroupingElement], items: Sequence[ast.AggregateItem]
    ) -> Table:
        """rollup((A,B)): one grouping for each prefix of its properties, united (aggregation, 3.10.2)."""
        fixed_elements = [element for element in elements if not isinstance(element, ast.Rollup)]
        (rollup, *others) = [element for element in elements if isinstance(element, ast.Rollup)]
        if others or rollup.hierarchy:
            raise errors.NotSupported(Message("several rollups, or rollup of a hierarchy"))
        properties = [ast.GroupingProperty(path, position=path.position) for path in rollup.properties]
        branches: list[Table] = []
        for length in range(len(properties), 0 if len(properties) > 1 else -1, -1):
            group = bind_elements(
                self.binder, [*fixed_elements, *properties[:length]], stage.scope, known_columns(stage)
            )
            branches.append(self.grouped(stage, group, items))
        full = branches[0]
        texts = [self._aligned(branch, full) for branch in branches]
        return Table(join(" UNION ALL ", texts), full.number, full.columns)

    def _aligned(self, branch: Table, full: Table) -> Sql:
        """The branch with all columns of the full one, in its order; missing ones are null."""
        known = {column.name: column for column in branch.columns}
        parts: list[str] = []
        for column in full.columns:
            own = known.get(column.name)
            for output, mine in ((column.output, own and own.output), (column.measure, own and own.measure)):
                if output is None:
                    continue
                value = f"{branch.alias}.{mine.name}" if mine else self.planner.dialect.null(output.type)
                parts.append(f"{value} AS {output.name}")
        names = dict.fromkeys(part.rpartition(" AS ")[2] for part in parts)
        by_name = {part.rpartition(" AS ")[2]: part for part in parts}
        chosen = ", ".join(by_name[name] for name in names)
        return compose(f"SELECT {chosen} FROM ({{0}}) {branch.alias}", branch.sql)  # noqa: S608  (names are the model's, values parameters)

    # --- wrapping -------------------------------------------------------------------------------------------------

    def _next(self) -> int:
        self._tables += 1
        return self._tables

    def _wrapped(
        self,
        table: Table,
        compiler: Compiler,
        *,
        where: Sql | None = None,
        order: Sql | None = None,
        limit: Sql | None = None,
        extra: Sequence[tuple[tuple[str, ...], Bound]] = (),
        raw: Sequence[Sql] = (),
    ) -> Table:
        """SELECT … FROM (table): the same columns, and additional ones."""
        number = self._next()

        def moved(output: Output) -> Output:
            return replace(output, relation=number)

        columns = [
            replace(each, output=moved(each.output), measure=moved(each.measure) if each.measure is not None else None)
            for each in table.columns
        ]
        names = {each.output.name for each in table.columns}
        names |= {each.measure.name for each in table.columns if each.measure is not None}
        selected = [Sql(f"{table.alias}.{name}") for name in sorted(names)]
        for index, (path, bound) in enumerate(extra):
            name = f"x{number}_{index}"
            selected.append(compiler.value(bound) + Sql(f" AS {name}"))
            output = Output(bound.type, bound.nullable, name, number)
            columns.append(ResultColumn(path, output, control=type_control(bound)))
        conditions, order_keys = ([each] if each is not None else [] for each in (where, order))
        text = select_from([*selected, *raw], compiler.block.from_sql(), conditions, order_keys)
        if limit is not None:
            text = text + limit
        orders = [
            replace(each, expression=moved(each.expression))
            for each in table.orders
            if isinstance(each.expression, Output)
        ]
        return Table(text, number, columns, orders)

    def limit_text(self, skip: ast.Constant | None, top: ast.Constant | None, compiler: Compiler) -> Sql:
        """LIMIT and OFFSET of a stage."""
        text = Sql("")
        if top is not None:
            text = text + Sql(" LIMIT ") + compiler.number(self._rows(top), 0)
        elif skip is not None and self.planner.dialect.vendor == "sqlite":
            text = text + Sql(" LIMIT -1")
        if skip is not None:
            text = text + Sql(" OFFSET ") + compiler.number(self._rows(skip), 0)
        return text

    def _rows(self, number: ast.Constant) -> Bound:
        """A number of rows, limited to 64 bits as in both databases."""
        value = self.binder.value(number, Scope(None))
        if not isinstance(value, Input):
            raise errors.NotSupported(Message("{0} with a number that is not a literal", "$apply"))
        convert = value.convert

        def checked(raw: Any) -> int:
            rows = convert(raw)
            if isinstance(rows, bool) or not isinstance(rows, int | Decimal) or rows != int(rows) or rows < 0:
                raise errors.BadRequest(
                    errors.BAD_QUERY_OPTION, "$apply", Message("a number of rows is a whole one and not negative")
                )
            return min(int(rows), _MOST_ROWS)

        result = replace(value, convert=checked)
        if isinstance(value.origin, Fixed):
            checked(value.origin.value)
        return result

    def table_order(self, table: Table, compiler: Compiler) -> Sql:
        """The table's order, made total by all its columns; enumerations by their numbers."""
        orders = list(table.orders)
        for column in table.columns:
            orders += [Order(each) for each in (column.output, column.measure) if each is not None]
        result: dict[Bound, Order] = {}
        for each in orders:
            result.setdefault(each.expression, each)
        dialect = self.planner.dialect
        return join(
            ", ",
            [
                dialect.order(
                    compiler.key(value), is_descending=each.is_descending, nullable=True, sort=value.type.sort
                )
                for each in result.values()
                for value in [by_number(each.expression) if each.expression.type.sort is Sort.ENUM else each.expression]
            ],
        )
