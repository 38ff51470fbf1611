"""The planner: compiles the query options of a request into plans (rows_plan) for one set of rights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from domain.model.repository import Repository
from domain.query.base.access import Access
from domain.query.base.bound import BOOL, GUID, Bound, Column, Compare, Order, Sort, Source, ValueType, fixed, new_root
from domain.query.base.representation import ParentScope, ShapeKey
from domain.query.base.scope import Scope, entity_scope
from domain.query.bind.binder import Binder
from domain.query.bind.expression_binder import mismatch
from domain.query.bind.paths import bind_path
from domain.query.bind.search import bind_search
from domain.query.bind.sources import column, follow
from domain.query.bind.texts import as_scalar
from domain.query.bind.type_rules import by_number
from domain.query.plan.calculated import ComputedBatch, plan_computed
from domain.query.plan.rows_plan import MAX_EXPANDED_ROWS, AnyBatchPlan, BatchPlan, Narrow, RowsPlan
from domain.query.plan.selection import Batch, EntityCode
from domain.query.rights.policies import visible
from domain.query.run.execute import Statement
from domain.query.run.paging import OrderKey, order_fingerprint
from domain.query.run.row_json import RowCode, shaper
from domain.query.sql import dialects, lists, subject_visibility  # noqa: F401  (they register compiler nodes)
from domain.query.sql.compiler import Compiler, new_statement
from domain.query.sql.fragments import Sql, compose, join, run_key, run_keys, select_from
from domain.query.sql.joins import Block
from domain.syntax import ast
from foundation import errors
from foundation.messages import TranslatableMessage as Message

#: Maximum of $orderby items. Each is compared with those before it, and SQLite sorts by at most 2,000.
MAX_ORDER_ITEMS = 100


class EntityStage(Protocol):
    """Result of $apply that consists of entities (apply.Entities)."""

    source: Source
    scope: Scope
    where: list[Bound]
    orders: list[Order]
    limit: Any

    def unlimited(self) -> EntityStage:
        """The same rows without a limit."""
        ...


class Planner:
    """Plans the requests of one shape for one set of rights."""

    def __init__(self, access: Access, shape: ShapeKey, aliases: Mapping[str, ast.Expression]) -> None:
        self.access = access
        self.shape = shape
        self.dialect = dialects.current()
        self.binder = Binder(access, aliases)

    # --- entry points ---------------------------------------------------------------------------------------------

    def rows(
        self,
        repository: Repository[Any],
        options: ast.QueryOptions,
        *,
        by: Sequence[str] = (),
        context: str = "",
        parent: ParentScope | None = None,
    ) -> RowsPlan:
        """The plan of a set (`by` empty), of an entity (by its "Id") or of a collection (by the back reference)."""
        source = self.root(repository)
        scope = self.binder.compute(options.compute, entity_scope(source))
        where = [*self.where(source, options, scope, by), *self.parent_visible(source, parent)]
        by_key = by == ("Id",)
        orders = () if by_key else self.orders(source, options, scope)
        return self._rows(source, options, scope, where, orders, context=context, by_key=by_key)

    def entities(self, stage: EntityStage, options: ast.QueryOptions, *, context: str) -> RowsPlan:
        """The plan of entities that $apply returns, with the query options beside it."""
        if stage.limit is not None:
            stage = stage.unlimited()
        scope = self.binder.compute(options.compute, stage.scope)
        where = [*stage.where, *self._filter_and_search(stage.source, options, scope)]
        orders = self.orders(stage.source, options, scope, stage.orders)
        return self._rows(stage.source, options, scope, where, orders, context=context)

    def _rows(
        self,
        source: Source,
        options: ast.QueryOptions,
        scope: Scope,
        where: Sequence[Bound],
        orders: Sequence[Order],
        *,
        context: str,
        by_key: bool = False,
    ) -> RowsPlan:
        repository = source.repository
        block = self.block(source)
        compiler = Compiler(block)
        code = RowCode(self.dialect, self.shape)
        entity = EntityCode(self.binder, compiler, code, self.shape, source)
        expression = entity.entity(source, options, computed=scope.computed)
        batches = tuple(self.batch(batch) for batch in entity.batches)
        etag = None
        if by_key and repository.is_root:
            version = column(source, repository.attributes["ObjectVersion"])
            etag = code.column(compiler.value(version), version.type)
        keys = tuple(self.order_key(compiler, order) for order in orders)
        key_columns = tuple(code.raw(self.seek_output(key)) for key in keys)
        narrow = self._narrow(source, block, where, orders) if len(orders) > 1 else None
        # Without conditions if the inner statement (Narrow) has filtered the rows.
        predicates = tuple(compiler.predicate(each) for each in where) if narrow is None else ()
        return RowsPlan(
            repository=repository,
            dialect=self.dialect,
            columns=code.columns,
            body=block.from_sql(),
            where=predicates,
            order=join(", ", [self.order_text(key) for key in keys]),
            keys=keys,
            key_columns=key_columns,
            shape=shaper(expression, code.names, len(code.columns)),
            batches=batches,
            counting=partial(self._counting, source, where),
            skip_nulls=self.shape.skip_nulls,
            context=context,
            etag_column=etag,
            fingerprint=order_fingerprint(repository.name, keys),
            narrow=narrow,
        )

    def _narrow(self, source: Source, outer: Block, where: Sequence[Bound], orders: Sequence[Order]) -> Narrow:
        block = self.block(source)
        compiler = Compiler(block)
        keys = tuple(self.order_key(compiler, order) for order in orders)
        predicates = tuple(compiler.predicate(each) for each in where)
        order = join(", ", [self.order_text(key) for key in keys])
        return Narrow(block.key(source), outer.key(source), block.from_sql(), predicates, keys, order)

    def count(
        self,
        repository: Repository[Any],
        options: ast.QueryOptions,
        *,
        by: Sequence[str] = (),
        parent: ParentScope | None = None,
    ) -> Statement:
        """SELECT COUNT(*) of the matching rows, with only the necessary joins."""
        source = self.root(repository)
        scope = self.binder.compute(options.compute, entity_scope(source))
        return self._counting(source, [*self.where(source, options, scope, by), *self.parent_visible(source, parent)])

    def _counting(self, source: Source, where: Sequence[Bound]) -> Statement:
        block = self.block(source)
        compiler = Compiler(block)
        predicates = [compiler.predicate(each) for each in where]
        return Statement.of(select_from([Sql("COUNT(*)")], block.from_sql(), predicates), self.dialect)

    def root(self, repository: Repository[Any]) -> Source:
        """The row variable of a set."""
        return new_root(repository, guarded=self.access.restricts(repository))

    # --- parts ----------------------------------------------------------------------------------------------------

    def block(self, source: Source) -> Block:
        return Block(new_statement(self.dialect, self.access), source)

    def where(self, source: Source, options: ast.QueryOptions, scope: Scope, by: Sequence[str]) -> list[Bound]:
        result: list[Bound] = []
        for name in by:
            attribute = source.repository.attributes[name]
            result.append(KeyEquals(column(source, attribute).type, False, column(source, attribute)))
        if source.guarded:
            condition = visible(self.access, source)
            if condition is not None:
                result.append(condition)
        return [*result, *self._filter_and_search(source, options, scope)]

    def _filter_and_search(self, source: Source, options: ast.QueryOptions, scope: Scope) -> list[Bound]:
        """$filter and $search."""
        result: list[Bound] = []
        if options.filter is not None:
            result.append(self.binder.predicate(options.filter, scope))
        if options.search is not None:
            result.append(bind_search(self.binder, options.search, source))
        return result

    def parent_visible(self, source: Source, parent: ParentScope | None) -> list[Bound]:
        """The condition that the caller may see the parent of a collection; none if its repository is unrestricted."""
        if parent is None or not self.access.restricts(parent.repository):
            return []
        back = source.repository.references[parent.repository.collections[parent.collection].back_reference]
        owner = follow(self.binder, source, back)
        key = column(owner, owner.repository.id)
        return [Compare(BOOL, False, "ne", key, fixed(None, GUID))]

    def orders(
        self, source: Source, options: ast.QueryOptions, scope: Scope, default: Sequence[Order] = ()
    ) -> tuple[Order, ...]:
        """$orderby, or the default, or the repository's own order; always ending in a unique key.

        Raises BadRequest for more than MAX_ORDER_ITEMS items.
        """
        if len(options.orderby) > MAX_ORDER_ITEMS:
            reason = Message("it has at most {0} items", MAX_ORDER_ITEMS)
            raise errors.BadRequest(errors.BAD_QUERY_OPTION, "$orderby", reason, target="$orderby")
        orders = [Order(self.binder.scalar(item.expression, scope), item.is_descending) for item in options.orderby]
        for item, order in zip(options.orderby, orders, strict=True):
            if order.expression.type.sort is Sort.SECRET:
                raise mismatch(item.expression.position, Message("{0} has no order", order.expression.type))
        orders = orders or list(default)
        if not orders:
            for name in source.repository.ordering:
                path = tuple(ast.NameStep(part) for part in name.lstrip("-").replace(".", "/").split("/"))
                bound = as_scalar(bind_path(self.binder, path, scope, 0))
                orders.append(Order(bound, name.startswith("-")))
        key = column(source, source.repository.id)
        result: list[Order] = []
        for order in orders:
            if not any(order.expression == each.expression for each in result):
                result.append(order)
            if order.expression == key or _decides(order.expression, source):
                # Further keys have no effect after a unique one.
                return tuple(result)
        return (*result, Order(key))

    def order_key(self, compiler: Compiler, order: Order) -> OrderKey:
        bound = order.expression
        if bound.type.sort is Sort.ENUM:
            bound = by_number(bound)
        value = compiler.key(bound)
        return OrderKey(
            value, bound.type.sort, order.is_descending, bound.nullable, self.dialect.seek_placeholder(bound.type)
        )

    def order_list(self, compiler: Compiler, orders: Sequence[Order]) -> Sql:
        """The text of ORDER BY."""
        return join(", ", [self.order_text(self.order_key(compiler, order)) for order in orders])

    def order_text(self, key: OrderKey) -> Sql:
        """One key of ORDER BY."""
        return self.dialect.order(key.sql, is_descending=key.is_descending, nullable=key.nullable, sort=key.sort)

    def seek_output(self, key: OrderKey) -> Sql:
        """The order key as an output column whose value can be a parameter of the next page's query."""
        if self.dialect.vendor == "sqlite":
            return self.dialect.output(key.sql, ValueType(key.sort))
        if key.sort in (Sort.BOOL,):
            return key.sql
        return compose("({0})::text", key.sql)

    # --- batches --------------------------------------------------------------------------------------------------

    def batch(self, batch: Batch | ComputedBatch) -> AnyBatchPlan:
        """The plan of a batch."""
        if isinstance(batch, ComputedBatch):
            source = self.root(batch.repository)
            where = self.where(source, ast.NO_OPTIONS, entity_scope(source), ())
            return plan_computed(self.binder, batch, source, where, self.shape, self.block, self.dialect)
        with self.binder.with_aliases(*batch.options.aliases):
            return self._count_batch(batch) if batch.kind is ast.ExpandKind.COUNT else self._expanded(batch)

    def _expanded(self, batch: Batch) -> BatchPlan:
        source = self.root(batch.repository)
        block = self.block(source)
        compiler = Compiler(block)
        code = RowCode(self.dialect, self.shape)
        owner = block.column(source, batch.back)
        code.column(owner, GUID)
        scope = self.binder.compute(batch.options.compute, self._batch_scope(batch, source))
        entity = EntityCode(self.binder, compiler, code, self.shape, scope.it)
        where = self.where(source, batch.options, scope, ())
        if batch.kind is ast.ExpandKind.REF:
            expression = self._reference_expression(batch.repository, source, compiler, code)
        else:
            expression = entity.entity(source, batch.options, batch.depth, scope.computed)
        predicates = [self.dialect.among_keys(owner, run_keys), *(compiler.predicate(each) for each in where)]
        orders = () if batch.single else self.orders(source, batch.options, scope)
        order = self.order_list(compiler, orders)
        top, skip = batch.options.top, batch.options.skip
        nested = tuple(self.batch(inner) for inner in entity.batches)
        if top is None and skip is None:
            text = select_from(code.columns, block.from_sql(), predicates, [order] if orders else ())
        else:
            text = self._windowed(compiler, code, block, owner, predicates, order, top, skip)
        text = text + Sql(f" LIMIT {MAX_EXPANDED_ROWS + 1}")
        shape = shaper(expression, code.names, len(code.columns))
        return BatchPlan(batch, Statement.of(text, self.dialect), shape, nested, self.shape.skip_nulls)

    def _batch_scope(self, batch: Batch, source: Source) -> Scope:
        """The scope of an expanded collection: `$it` remains the row of the addressed set (Part 2, 5.1.1.14.4)."""
        return Scope(source, None if batch.it is None else batch.it.follow(self.binder, source))

    def _windowed(
        self,
        compiler: Compiler,
        code: RowCode,
        block: Block,
        owner: Sql,
        predicates: Sequence[Sql],
        order: Sql,
        top: ast.Constant | None,
        skip: ast.Constant | None,
    ) -> Sql:
        """$top and $skip for each parent, by a window function: one query for all of them."""
        number = join("", [Sql("ROW_NUMBER() OVER (PARTITION BY "), owner, Sql(" ORDER BY "), order, Sql(")")])
        named = [join("", [each, Sql(f" AS c{index}")]) for index, each in enumerate(code.columns)]
        inner = select_from([*named, number + Sql(" AS rn")], block.from_sql(), predicates)
        limits: list[Sql] = []
        start = self._constant(compiler, skip) if skip is not None else Sql("0")
        if skip is not None:
            limits.append(compose("rn > {0}", start))
        if top is not None:
            limits.append(compose("rn <= {0} + {1}", start, self._constant(compiler, top)))
        names = ", ".join(self._plain_output(index) for index in range(len(code.columns)))
        return join(
            "",
            [Sql(f"SELECT {names} FROM ("), inner, Sql(") w WHERE "), join(" AND ", limits), Sql(" ORDER BY rn")],  # noqa: S608  (names are the model's, values parameters)
        )

    def _plain_output(self, index: int) -> str:
        # An expression: a bare column of a derived table keeps its declared type, which activates Django's converters.
        return f"+c{index}" if self.dialect.vendor == "sqlite" else f"c{index}"

    def _constant(self, compiler: Compiler, node: ast.Constant) -> Sql:
        bound = self.binder.value(node, Scope(None))
        return compiler.number(bound, 0)

    def _reference_expression(
        self, repository: Repository[Any], source: Source, compiler: Compiler, code: RowCode
    ) -> str:
        key = code.column(compiler.block.key(source), GUID)
        return f'{{"@odata.id": {f"{repository.set_name}("!r} + r[{key}] + ")"}}'

    def _count_batch(self, batch: Batch) -> BatchPlan:
        source = self.root(batch.repository)
        block = self.block(source)
        compiler = Compiler(block)
        owner = block.column(source, batch.back)
        key = self.dialect.output(owner, GUID)
        where = self.where(source, batch.options, self._batch_scope(batch, source), ())
        predicates = [self.dialect.among_keys(owner, run_keys), *(compiler.predicate(each) for each in where)]
        text = select_from([key, Sql("COUNT(*)")], block.from_sql(), predicates) + Sql(" GROUP BY ") + owner
        return BatchPlan(batch, Statement.of(text, self.dialect), None, (), False)


def _decides(expression: Bound, source: Source) -> bool:
    """Whether the value is unique among the rows of the source."""
    return (
        isinstance(expression, Column)
        and expression.source == source
        and expression.attribute.unique
        and not expression.nullable
    )


@dataclass(frozen=True, slots=True)
class KeyEquals(Bound):
    """The key of the row, or its reference to the parent, is run.key."""

    column: Bound


def _key_equals(compiler: Compiler, node: KeyEquals, exact: bool) -> Sql:
    placeholder = compiler.dialect.placeholder(GUID)
    return compiler.value(node.column) + Sql(f" = {placeholder}", (run_key,))


Compiler.register_predicate(KeyEquals, _key_equals)
