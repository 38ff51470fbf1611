"""Plans: everything about a read that does not depend on its values, made once and kept (see `cache`).

A plan of rows is one SELECT with its shaper, and below it the batches that each fetch one expanded collection for all
rows at once. Executing one is: parameters, cursor, rows, batches, shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from domain.cursor import Row
from domain.model.repository import Repository
from domain.odata.syntax import ast
from domain.query import dialects
from domain.query.access import Access
from domain.query.bind import Binder, mismatch
from domain.query.blocks import Block
from domain.query.blocks import Statement as StatementContext
from domain.query.bound import BOOL, GUID, Bound, Column, Compare, Order, Sort, Source, fixed
from domain.query.execute import Statement
from domain.query.fragments import Run, Sql, compose, join, run_key, run_keys, run_limit, run_skip
from domain.query.paging import OrderKey, order_fingerprint, seek_condition
from domain.query.paths import bind_path, column, follow
from domain.query.policies import visible
from domain.query.representation import ParentScope, ShapeKey
from domain.query.scope import Scope, entity_scope
from domain.query.search import bind_search
from domain.query.selection import Batch, EntityCode
from domain.query.shape import MAX_ANSWER_BYTES, AnswerSize, RowCode, Shaper, drop_nulls, shaper
from domain.query.sql import Compiler, new_root
from domain.query.texts import as_scalar
from foundation import errors
from foundation.phrases import Phrase


class EntityStage(Protocol):
    """What $apply leaves as entities (apply.Entities)."""

    source: Source
    scope: Scope
    where: list[Bound]
    orders: list[Order]
    limit: Any

    def unlimited(self) -> EntityStage:
        """The same rows without a limit."""
        ...


#: Rows of one expanded collection, below all rows of a page; as JSON so many are nearly always more than an answer has.
MAX_EXPANDED_ROWS = 100_000
_NO_GROUPS: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class BatchPlan:
    """Fetches one batch. Column 0 of its rows is the key that they belong to."""

    batch: Batch
    statement: Statement
    shape: Shaper | None
    batches: tuple[BatchPlan, ...]
    skip_nulls: bool

    def groups(self, parents: Sequence[Row], run: Run, size: AnswerSize) -> Mapping[str, Any]:
        """key → JSON of the list of rows (or count, or the JSON of the one row).

        As JSON and not as objects: a row that hangs on many keys would be written out anew below each of them, level by
        level, before anybody knew how long the answer becomes. Raises PayloadTooLarge.
        """
        position = self.batch.key_column
        keys = list({row[position]: None for row in parents if row[position] is not None})
        if not keys:
            return {}
        run.keys = self.statement.dialect.encode_keys(keys)
        rows = self.statement.fetch(run)
        if self.shape is None:
            return dict(rows)
        if len(rows) > MAX_EXPANDED_ROWS:
            raise errors.PayloadTooLarge(errors.ANSWER_TOO_LARGE, MAX_ANSWER_BYTES)
        shaped = shape_rows(self.shape, rows, self.batches, run)
        if self.skip_nulls:
            shaped = [drop_nulls(value) for value in shaped]
        if self.batch.single:
            if self.batch.as_objects:
                return {row[0]: value for row, value in zip(rows, shaped, strict=True)}
            return {row[0]: size.fragment(value) for row, value in zip(rows, shaped, strict=True)}
        groups: dict[str, list[Any]] = {}
        for row, value in zip(rows, shaped, strict=True):
            known = groups.get(row[0])
            if known is None:
                groups[row[0]] = [value]
            else:
                known.append(value)
        write = size.array if self.batches else size.fragment
        return {key: write(values) for key, values in groups.items()}


def shape_rows(shape: Shaper, rows: Sequence[Row], batches: Sequence[BatchPlan], run: Run) -> list[Any]:
    """The rows as JSON-ready values, with their batches fetched. Raises PayloadTooLarge."""
    if not batches:
        return shape(rows, _NO_GROUPS)
    # All that is fetched here stands in the rows, so together it is no longer than they are.
    size = AnswerSize()
    return shape(rows, [batch.groups(rows, run, size) for batch in batches])


@dataclass(frozen=True, slots=True)
class Narrow:
    """The keys of a page, chosen with no more columns and joins than filter and order need.

    A sort carries every output column of every row that matches; so an ordered page is found by its keys first, and
    only its own rows are read in full.
    """

    key: Sql
    outer_key: Sql
    body: Sql
    where: tuple[Sql, ...]
    keys: tuple[OrderKey, ...]
    order: Sql


@dataclass(slots=True)
class RowsPlan:
    """A set, an owned collection or one entity.

    select, body   the statement up to and behind FROM … WHERE; ORDER BY is `order`
    keys           the order, ending in the key; their values are the last columns of a row
    aggregated     rows of $apply: no entities, no keys, paged by offset
    """

    repository: Repository[Any]
    dialect: dialects.Dialect
    select: Sql
    body: Sql
    where: tuple[Sql, ...]
    order: Sql
    keys: tuple[OrderKey, ...]
    width: int
    shape: Shaper
    batches: tuple[BatchPlan, ...]
    counting: Callable[[], Statement]
    skip_nulls: bool
    context: str
    etag_column: int | None = None
    aggregated: bool = False
    fingerprint: str = ""
    narrow: Narrow | None = None
    _variants: dict[Any, Statement] = field(default_factory=dict)

    @property
    def count_statement(self) -> Statement:
        """SELECT COUNT(*) of all rows; made when it is first asked for, as most reads never do."""
        known = self._variants.get("count")
        if known is None:
            known = self._variants["count"] = self.counting()
        return known

    def statement(self, nulls: tuple[bool, ...] | None, *, with_skip: bool, with_limit: bool = True) -> Statement:
        """The statement for a page; nulls: which of the order keys to seek are null, None for the first page."""
        variant = (nulls, with_skip, with_limit)
        known = self._variants.get(variant)
        if known is None:
            narrow = self.narrow
            if narrow is None:
                whole = Narrow(self.order, self.order, self.body, self.where, self.keys, self.order)
                text = self._page(self.select, whole, nulls, with_skip=with_skip, with_limit=with_limit)
            else:
                chosen = self._page(
                    Sql("SELECT ") + narrow.key, narrow, nulls, with_skip=with_skip, with_limit=with_limit
                )
                text = join("", [self.select, Sql(" FROM "), self.body, Sql(" WHERE "), narrow.outer_key, Sql(" IN (")])
                text = join("", [text, chosen, Sql(") ORDER BY "), self.order])
            known = self._variants[variant] = Statement.of(text, self.dialect)
        return known

    def _page(
        self, select: Sql, narrow: Narrow, nulls: tuple[bool, ...] | None, *, with_skip: bool, with_limit: bool
    ) -> Sql:
        """SELECT … LIMIT … OFFSET of a page."""
        conditions = narrow.where
        if nulls is not None:
            conditions = (*conditions, seek_condition(narrow.keys, nulls, self.dialect))
        parts = [select, Sql(" FROM "), narrow.body]
        if conditions:
            parts += [Sql(" WHERE "), join(" AND ", conditions)]
        if narrow.order.text:
            parts += [Sql(" ORDER BY "), narrow.order]
        if with_limit:
            parts.append(Sql(" LIMIT %s", (run_limit,)))
        if with_skip:
            parts.append(Sql(" OFFSET %s", (run_skip,)))
        return join("", parts)

    def shaped(self, rows: Sequence[Row], run: Run) -> list[Any]:
        """The rows as JSON-ready values. Raises PayloadTooLarge."""
        values = shape_rows(self.shape, rows, self.batches, run)
        return [drop_nulls(value) for value in values] if self.skip_nulls else values


class Planner:
    """Makes the plans of one request's shape for one set of rights."""

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
        scope = self.with_compute(source, options, entity_scope(source))
        where = [*self.where(source, options, scope, by), *self.parent_visible(source, parent)]
        by_key = by == ("Id",)
        orders = () if by_key else self.orders(source, options, scope)
        return self._rows(source, options, scope, where, orders, context=context, by_key=by_key)

    def entities(self, stage: EntityStage, options: ast.QueryOptions, *, context: str) -> RowsPlan:
        """The plan of what $apply leaves as entities, with the options that stand beside it."""
        if stage.limit is not None:
            stage = stage.unlimited()
        scope = self.with_compute(stage.source, options, stage.scope)
        where = [*stage.where, *self._asked(stage.source, options, scope)]
        orders = self.orders(stage.source, options, scope, stage.orders)
        return self._rows(stage.source, options, scope, where, orders, context=context)

    def with_compute(self, source: Source, options: ast.QueryOptions, scope: Scope) -> Scope:
        """The scope behind $compute, whose names are new ones."""
        for item in options.compute:
            if source.repository.attribute(item.alias) is not None:
                raise errors.BadRequest(
                    errors.BAD_QUERY_OPTION, "$compute", Phrase("{0} is a property already", item.alias)
                )
        return self.binder.compute(options.compute, scope)

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
        code = RowCode(self.dialect, ieee754=self.shape[1])
        entity = EntityCode(self.binder, compiler, code, self.shape)
        expression = entity.entity(source, options, computed=scope.computed)
        batches = tuple(self.batch(batch) for batch in entity.batches)
        etag = None
        if by_key and repository.is_root:
            version = column(source, repository.attributes["ObjectVersion"])
            etag = code.column(compiler.value(version), version.type)
        keys = tuple(self.order_key(compiler, order) for order in orders)
        for key in keys:
            code.columns.append(self._seek_output(key))
        narrow = self._narrow(source, block, where, orders) if len(orders) > 1 else None
        # What the inner statement has chosen needs no choosing again, nor the joins for it.
        predicates = tuple(compiler.predicate(each) for each in where) if narrow is None else ()
        return RowsPlan(
            repository=repository,
            dialect=self.dialect,
            select=Sql("SELECT ") + join(", ", code.columns),
            body=block.from_sql(),
            where=predicates,
            order=join(", ", [self.order_text(key) for key in keys]),
            keys=keys,
            width=len(code.columns) - len(keys),
            shape=shaper(expression, code.names, len(code.columns)),
            batches=batches,
            counting=partial(self._counting, source, where),
            skip_nulls=self.shape[2],
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
        """SELECT COUNT(*) of the rows that match, with the joins that this needs only."""
        source = self.root(repository)
        scope = self.with_compute(source, options, entity_scope(source))
        return self._counting(source, [*self.where(source, options, scope, by), *self.parent_visible(source, parent)])

    def _counting(self, source: Source, where: Sequence[Bound]) -> Statement:
        block = self.block(source)
        compiler = Compiler(block)
        predicates = [compiler.predicate(each) for each in where]
        return self._finish("SELECT COUNT(*)", block, predicates)

    def root(self, repository: Repository[Any]) -> Source:
        """The row variable of a set."""
        return new_root(repository, guarded=self.access.restricts(repository))

    # --- parts ----------------------------------------------------------------------------------------------------

    def block(self, source: Source) -> Block:
        return Block(StatementContext(self.dialect, self.access), source)

    def _finish(self, select: str, block: Block, predicates: Sequence[Sql]) -> Statement:
        text = Sql(f"{select} FROM ") + block.from_sql()
        if predicates:
            text = text + Sql(" WHERE ") + join(" AND ", predicates)
        return Statement.of(text, self.dialect)

    def where(self, source: Source, options: ast.QueryOptions, scope: Scope, by: Sequence[str]) -> list[Bound]:
        found: list[Bound] = []
        for name in by:
            attribute = source.repository.attributes[name]
            found.append(KeyEquals(column(source, attribute).type, False, column(source, attribute)))
        if source.guarded:
            condition = visible(self.access, source)
            if condition is not None:
                found.append(condition)
        return [*found, *self._asked(source, options, scope)]

    def _asked(self, source: Source, options: ast.QueryOptions, scope: Scope) -> list[Bound]:
        """$filter and $search."""
        found: list[Bound] = []
        if options.filter is not None:
            found.append(self.binder.predicate(options.filter, scope))
        if options.search is not None:
            found.append(bind_search(self.binder, options.search, source))
        return found

    def parent_visible(self, source: Source, parent: ParentScope | None) -> list[Bound]:
        """That the caller may see the entity whose collection is read, where that is a question."""
        if parent is None or not self.access.restricts(parent.repository):
            return []
        back = source.repository.references[parent.repository.collections[parent.collection].back_reference]
        owner = follow(self.binder, source, back)
        key = column(owner, owner.repository.id)
        return [Compare(BOOL, False, "ne", key, fixed(None, GUID))]

    def orders(
        self, source: Source, options: ast.QueryOptions, scope: Scope, default: Sequence[Order] = ()
    ) -> tuple[Order, ...]:
        """$orderby, or the default, or the repository's own order; always ending in what no two rows share: the key."""
        orders = [Order(self.binder.scalar(item.expression, scope), item.is_descending) for item in options.orderby]
        for item, order in zip(options.orderby, orders, strict=True):
            if order.expression.type.sort is Sort.SECRET:
                mismatch(item.expression.position, Phrase("{0} has no order", order.expression.type))
        orders = orders or list(default)
        if not orders:
            for name in source.repository.ordering:
                path = tuple(ast.NameStep(part) for part in name.lstrip("-").replace(".", "/").split("/"))
                bound = as_scalar(bind_path(self.binder, path, scope, 0))
                orders.append(Order(bound, name.startswith("-")))
        key = column(source, source.repository.id)
        made: list[Order] = []
        for order in orders:
            if not any(order.expression == each.expression for each in made):
                made.append(order)
            if order.expression == key or _decides(order.expression, source):
                # Behind it nothing can tie.
                return tuple(made)
        return (*made, Order(key))

    def order_key(self, compiler: Compiler, order: Order) -> OrderKey:
        bound = order.expression
        if bound.type.sort is Sort.ENUM:
            from domain.query.bind import by_number

            bound = by_number(bound)
        value = compiler.key(bound)
        return OrderKey(
            value, bound.type.sort, order.is_descending, bound.nullable, self.dialect.seek_placeholder(bound.type)
        )

    def order_text(self, key: OrderKey) -> Sql:
        return self.dialect.order(key.sql, is_descending=key.is_descending, nullable=key.nullable, sort=key.sort)

    def _seek_output(self, key: OrderKey) -> Sql:
        """The order key as a column whose value can be sent back as a parameter."""
        if self.dialect.vendor == "sqlite":
            return Sql("+" + key.sql.text, key.sql.params)
        if key.sort in (Sort.BOOL,):
            return key.sql
        return compose("({0})::text", key.sql)

    # --- batches --------------------------------------------------------------------------------------------------

    def batch(self, batch: Batch) -> BatchPlan:
        if batch.kind is ast.ExpandKind.COUNT:
            return self._count_batch(batch)
        source = self.root(batch.repository)
        block = self.block(source)
        compiler = Compiler(block)
        code = RowCode(self.dialect, ieee754=self.shape[1])
        owner = block.column(source, batch.back)
        code.column(owner, GUID)
        entity = EntityCode(self.binder, compiler, code, self.shape)
        scope = self.with_compute(source, batch.options, entity_scope(source))
        where = self.where(source, batch.options, scope, ())
        if batch.kind is ast.ExpandKind.REF:
            expression = self._reference_expression(batch.repository, source, compiler, code)
        else:
            expression = entity.entity(source, batch.options, batch.depth, scope.computed)
        predicates = [self.dialect.among_keys(owner, run_keys), *(compiler.predicate(each) for each in where)]
        orders = () if batch.single else self.orders(source, batch.options, scope)
        order = join(", ", [self.order_text(self.order_key(compiler, each)) for each in orders])
        top, skip = batch.options.top, batch.options.skip
        nested = tuple(self.batch(inner) for inner in entity.batches)
        if top is None and skip is None:
            text = join("", [Sql("SELECT "), join(", ", code.columns), Sql(" FROM "), block.from_sql()])
            text = text + Sql(" WHERE ") + join(" AND ", predicates)
            if orders:
                text = text + Sql(" ORDER BY ") + order
        else:
            text = self._windowed(compiler, code, block, owner, predicates, order, top, skip)
        text = text + Sql(f" LIMIT {MAX_EXPANDED_ROWS + 1}")
        shape = shaper(expression, code.names, len(code.columns))
        return BatchPlan(batch, Statement.of(text, self.dialect), shape, nested, self.shape[2])

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
        """$top and $skip for each parent, by a window function: still one query for all of them."""
        number = join("", [Sql("ROW_NUMBER() OVER (PARTITION BY "), owner, Sql(" ORDER BY "), order, Sql(")")])
        named = [join("", [each, Sql(f" AS c{index}")]) for index, each in enumerate(code.columns)]
        inner = join(
            "", [Sql("SELECT "), join(", ", [*named, number + Sql(" AS rn")]), Sql(" FROM "), block.from_sql()]
        )
        inner = inner + Sql(" WHERE ") + join(" AND ", predicates)
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
        # A bare column would show its declared type through the derived table, and wake Django's converters.
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
        where = self.where(source, batch.options, entity_scope(source), ())
        predicates = [self.dialect.among_keys(owner, run_keys), *(compiler.predicate(each) for each in where)]
        text = join("", [Sql("SELECT "), key, Sql(", COUNT(*) FROM "), block.from_sql()])
        text = text + Sql(" WHERE ") + join(" AND ", predicates) + Sql(" GROUP BY ") + owner
        return BatchPlan(batch, Statement.of(text, self.dialect), None, (), False)


def _decides(expression: Bound, source: Source) -> bool:
    """Whether no two rows of the source have the same value there."""
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

__all__ = ["BatchPlan", "Planner", "RowsPlan", "replace"]
