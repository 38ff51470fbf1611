"""Plans of reads with $apply: rows without keys, and the concatenation of several results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.bound import Sort
from domain.query.base.context_url import context_suffix
from domain.query.base.representation import ShapeKey
from domain.query.base.scope import entity_scope
from domain.query.bind.sources import unknown
from domain.query.plan.aggregation import ResultColumn, Table
from domain.query.plan.apply import ApplyPlanner, Entities
from domain.query.plan.concat import ConcatPlan
from domain.query.plan.dynamic_types import is_text_in_ieee754
from domain.query.plan.planner import Planner
from domain.query.plan.rows_plan import RowsPlan
from domain.query.plan.selection import Batch
from domain.query.run.execute import Statement
from domain.query.run.row_json import RowCode, shaper
from domain.query.sql.fragments import compose
from domain.syntax import ast
from foundation import errors
from foundation.kinds import Kind
from foundation.messages import TranslatableMessage as Message


def plan_table(applied: ApplyPlanner, repository: Repository[Any], table: Table, options: ast.QueryOptions) -> RowsPlan:
    """The plan of a table with the query options beside $apply."""
    planner = applied.planner
    if options.search is not None:
        raise errors.NotSupported(Message("$search beside groupby or aggregate"))
    stage: Any = table
    if options.compute:
        stage = applied.computed(stage, options.compute)
    if options.filter is not None:
        stage = applied.filtered(stage, options.filter)
    if options.orderby:
        stage = applied.ordered(stage, options.orderby)
    assert isinstance(stage, Table)
    stage.columns = [_as_declared(column, repository) for column in stage.columns]
    compiler = stage.compiler(applied.statement)
    code = RowCode(planner.dialect, planner.shape)
    batches: list[Batch] = []
    expression = _expression(applied, stage, options, code, compiler, batches)
    order = applied.table_order(stage, compiler)
    count_text = compose("SELECT COUNT(*) FROM ({0}) n", stage.sql)
    return RowsPlan(
        repository=repository,
        dialect=planner.dialect,
        columns=code.columns,
        body=compiler.block.from_sql(),
        where=(),
        order=order,
        keys=(),
        shape=shaper(expression, code.names, len(code.columns)),
        batches=tuple(planner.batch(batch) for batch in batches),
        counting=partial(Statement.of, count_text, planner.dialect),
        skip_nulls=planner.shape.skip_nulls,
        context=f"{repository.set_name}({_context([column.path for column in _selected(stage, options)])})",
        aggregated=True,
        fingerprint=f"{repository.name}|{stage.sql.text}"[:4000],
    )


def _as_declared(column: ResultColumn, repository: Repository[Any]) -> ResultColumn:
    """Give a number whose alias is a declared property its type, which clients such as UI5 read from $metadata."""
    attribute = repository.attributes.get(column.name)
    if attribute is None or attribute.kind is not Kind.INT or not column.output.type.integer:
        return column
    return replace(column, is_declared=True, control="")


def _context(paths: Sequence[tuple[str, ...]]) -> str:
    """The select list of the context URL: `SalesOrder(Customer),Total`."""
    inner: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        behind = inner.setdefault(path[0], [])
        if len(path) > 1:
            behind.append(path[1:])
    return ",".join(f"{name}({_context(behind)})" if behind else name for name, behind in inner.items())


def _expression(
    applied: ApplyPlanner,
    table: Table,
    options: ast.QueryOptions,
    code: RowCode,
    compiler: Any,
    batches: list[Batch],
) -> str:
    """The nested object of one row."""
    tree = _Member()
    expansions = _expansions(applied, table, options)
    columns = _selected(table, options)
    whole = {column.path for column in columns if not column.target and column.measure is None}
    for column in columns:
        if any(column.path[:length] in whole for length in range(1, len(column.path))):
            # The column of the whole value has the text in this language already.
            continue
        at = tree
        for name in column.path[:-1]:
            at = at.inner.setdefault(name, _Member())
        last = column.path[-1]
        if control := _control(column, applied.planner.shape):
            at.inner[f"{last}@odata.type"] = _Member(repr(control))
        at = at.inner.setdefault(last, _Member())
        item = expansions.get(column.name.lower())
        at.own = _value(column, code, compiler, item, batches, is_text=applied.planner.shape.ieee754)
        if _is_date_text(column, applied.planner.shape):
            at.own = f"(None if {at.own} is None else str({at.own}))"
    prefix = '"@odata.id": None, ' if applied.planner.shape.metadata != "none" else ""
    return "{" + prefix + tree.members() + "}"


def _is_date_text(column: ResultColumn, shape: ShapeKey) -> bool:
    return column.is_date_part and shape.version == "4.0"


def _control(column: ResultColumn, shape: ShapeKey) -> str:
    """The type control information of a column; "" if $metadata or the JSON value shows the type."""
    if shape.metadata == "none" or (column.is_declared and shape.metadata != "full") or column.target:
        return ""
    if column.measure is not None:
        return "#Erp.Amount" if column.measure_name == "Currency" else "#Erp.Quantity"
    return "" if _is_date_text(column, shape) else column.control


@dataclass(slots=True)
class _Member:
    """A member of the row's object: the expression of its value, nested members, or both."""

    own: str = ""
    inner: dict[str, _Member] = field(default_factory=dict)

    def members(self) -> str:
        return ", ".join(f"{name!r}: {member}" for name, member in self.inner.items())

    def __str__(self) -> str:
        if not self.inner:
            return self.own
        own = f"**({self.own} or {{}}), " if self.own else ""
        return f"{{{own}{self.members()}}}"


def _value(
    column: ResultColumn,
    code: RowCode,
    compiler: Any,
    item: ast.ExpandItem | None,
    batches: list[Batch],
    *,
    is_text: bool,
) -> str:
    """The expression of a column's value. `is_text`: numbers that a double does not hold are strings."""
    position = code.column(compiler.value(column.output), column.output.type)
    if item is not None:
        target = repositories[column.target]
        batches.append(
            Batch(
                len(batches),
                position,
                target,
                target.id,
                ast.ExpandKind.ENTITIES,
                item.options,
                1,
                single=True,
                as_objects=True,
            )
        )
        return f"g[{len(batches) - 1}].get(r[{position}])"
    if column.target:
        # $select does not apply to a group, and callers need its key.
        link = f"{f'{column.target_set}('!r} + r[{position}] + ')'"
        return f'(None if r[{position}] is None else {{"@odata.id": {link}, "Id": r[{position}]}})'
    value_type = column.output.type
    target_set = repositories[value_type.target].set_name if value_type.sort is Sort.REFERENCE else ""
    value = code.value(position, value_type, target_set=target_set)
    if is_text and is_text_in_ieee754(column.control, column.output):
        value = f"(None if {value} is None else str({value}))"
    if column.measure is None:
        return value
    unit = code.column(compiler.value(column.measure), column.measure.type)
    return f'(None if r[{position}] is None else {{"Value": {value}, {column.measure_name!r}: r[{unit}]}})'


def _expansions(applied: ApplyPlanner, table: Table, options: ast.QueryOptions) -> dict[str, ast.ExpandItem]:
    """expandgroup items, and $expand beside $apply, by the path of the grouped reference."""
    known = {column.name.lower(): column for column in table.columns}
    result: dict[str, ast.ExpandItem] = {}
    for item in (*applied.group_expansions, *options.expand):
        name = "/".join(step.name for step in item.path if isinstance(step, ast.NameStep))
        column = known.get(name.lower())
        if column is None:
            unknown(name, [each.name for each in table.columns], Message("the result of $apply"))
        if not column.target:
            raise errors.BadRequest(
                errors.BAD_QUERY_OPTION, "$apply", Message("{0} is not a reference that was grouped by", name)
            )
        result[name.lower()] = item
    return result


def _selected(table: Table, options: ast.QueryOptions) -> list[ResultColumn]:
    if not options.select:
        return table.columns
    chosen: list[ResultColumn] = []
    for item in options.select:
        if any(isinstance(step, ast.StarStep) for step in item.path):
            return table.columns
        name = "/".join(step.name for step in item.path if isinstance(step, ast.NameStep)).lower()
        if name == "default":
            return table.columns
        result = [
            each for each in table.columns if each.name.lower() == name or each.name.lower().startswith(f"{name}/")
        ]
        if not result:
            unknown(name, [each.name for each in table.columns], Message("the result of $apply"))
        chosen += [each for each in result if each not in chosen]
    return chosen


def plan_concat(
    planner: Planner,
    repository: Repository[Any],
    transformations: Sequence[ast.Transformation],
    options: ast.QueryOptions,
    by: Sequence[str],
) -> ConcatPlan:
    """…/concat(a,b): one plan for each branch, executed one after the other (aggregation, 3.6.1)."""
    if options.filter is not None or options.orderby or options.compute or options.search is not None or options.select:
        raise errors.NotSupported(Message("query options beside a concat other than $top, $skip and $count"))
    branches: list[RowsPlan] = []
    for sequence in _sequences(tuple(transformations)):
        applied = ApplyPlanner(planner)
        source = planner.root(repository)
        scope = entity_scope(source)
        stage: Any = Entities(source, scope, planner.where(source, ast.NO_OPTIONS, scope, by))
        stage = applied.run(stage, sequence)
        bare = ast.QueryOptions(expand=options.expand if isinstance(stage, Entities) else ())
        if isinstance(stage, Entities):
            branches.append(planner.entities(stage, bare, context=repository.set_name))
        else:
            branches.append(plan_table(applied, repository, stage, bare))
    return ConcatPlan.of(branches)


def _sequences(transformations: tuple[ast.Transformation, ...]) -> Iterator[tuple[ast.Transformation, ...]]:
    """The sequences of a final concat, each after the preceding transformations; they may end in a concat, too."""
    last = transformations[-1]
    if not isinstance(last, ast.ConcatTransformation):
        yield transformations
        return
    for sequence in last.sequences:
        yield from _sequences((*transformations[:-1], *sequence))


def plan_apply(
    planner: Planner, repository: Repository[Any], options: ast.QueryOptions, *, by: Sequence[str]
) -> RowsPlan | ConcatPlan:
    """The plan of a read with $apply and the options after it.

    $filter applies to the result. If it names properties that only the entities have, it applies to the entities before
    the transformations, as on the reference platform.
    """
    try:
        return _plan_apply(planner, repository, options, by=by)
    except errors.BadRequest as error:
        if options.filter is None or error.code is not errors.UNKNOWN_PROPERTY:
            raise
        first = ast.FilterTransformation(options.filter)
        before = replace(options, filter=None, apply=(first, *options.apply))
        try:
            return _plan_apply(planner, repository, before, by=by)
        except errors.BadRequest:
            raise error from None


def _plan_apply(
    planner: Planner, repository: Repository[Any], options: ast.QueryOptions, *, by: Sequence[str]
) -> RowsPlan | ConcatPlan:
    transformations = options.apply
    rest = replace(options, apply=())
    applied = ApplyPlanner(planner)
    if isinstance(transformations[-1], ast.ConcatTransformation):
        return plan_concat(planner, repository, transformations, rest, by)
    source = planner.root(repository)
    start = Entities(source, entity_scope(source), planner.where(source, ast.NO_OPTIONS, entity_scope(source), by))
    stage = applied.run(start, transformations)
    if isinstance(stage, Entities):
        return planner.entities(stage, rest, context=repository.set_name + context_suffix(repository, rest))
    return plan_table(applied, repository, stage, rest)
