"""Plans for what $apply leaves: rows without keys, and the concatenation of several results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from domain.model.registry import repositories
from domain.model.repository import Repository
from domain.query.base.bound import GUID
from domain.query.base.scope import entity_scope
from domain.query.bind.sources import unknown
from domain.query.plan.aggregation import ResultColumn, Table
from domain.query.plan.apply import ApplyPlanner, Entities
from domain.query.plan.concat import ConcatPlan
from domain.query.plan.planner import Planner, RowsPlan
from domain.query.plan.selection import Batch
from domain.query.run.execute import Statement
from domain.query.run.shape import RowCode, shaper
from domain.query.sql.fragments import Sql, compose, join
from domain.syntax import ast
from foundation import errors
from foundation.phrases import Phrase


def plan_table(applied: ApplyPlanner, repository: Repository[Any], table: Table, options: ast.QueryOptions) -> RowsPlan:
    """Rows of a table with the options that stand beside $apply."""
    planner = applied.planner
    if options.search is not None:
        raise errors.NotSupported(Phrase("$search beside groupby or aggregate"))
    stage: Any = table
    if options.compute:
        stage = applied.computed(stage, options.compute)
    if options.filter is not None:
        stage = applied.filtered(stage, options.filter)
    if options.orderby:
        stage = applied.ordered(stage, options.orderby)
    assert isinstance(stage, Table)
    compiler = stage.compiler(applied.statement)
    code = RowCode(planner.dialect, ieee754=planner.shape[1])
    batches: list[Batch] = []
    expression = _expression(applied, stage, options, code, compiler, batches)
    order = applied.table_order(stage, compiler)
    count_text = compose("SELECT COUNT(*) FROM ({0}) n", stage.sql)
    return RowsPlan(
        repository=repository,
        dialect=planner.dialect,
        select=Sql("SELECT ") + join(", ", code.columns),
        body=compiler.block.from_sql(),
        where=(),
        order=order,
        keys=(),
        width=len(code.columns),
        shape=shaper(expression, code.names, len(code.columns)),
        batches=tuple(planner.batch(batch) for batch in batches),
        counting=partial(Statement.of, count_text, planner.dialect),
        skip_nulls=planner.shape[2],
        context=f"{repository.set_name}({_context([column.path for column in stage.columns])})",
        aggregated=True,
        fingerprint=f"{repository.name}|{stage.sql.text}"[:4000],
    )


def _context(paths: Sequence[tuple[str, ...]]) -> str:
    """The part of the context URL that tells the members: `SalesOrder(Customer),Total`."""
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
            # A text in one language is in the text in all of them.
            continue
        at = tree
        for name in column.path:
            at = at.inner.setdefault(name, _Member())
        at.own = _value(column, code, compiler, expansions.get(column.name.lower()), batches)
    prefix = '"@odata.id": None, ' if applied.planner.shape[0] != "none" else ""
    return "{" + prefix + tree.members() + "}"


@dataclass(slots=True)
class _Member:
    """A member of the row's object: the expression of its own value, what is inside of it, or both."""

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
    column: ResultColumn, code: RowCode, compiler: Any, item: ast.ExpandItem | None, batches: list[Batch]
) -> str:
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
        # A group has no $select of its own, and who asks for groups wants their keys.
        link = f"{f'{column.target_set}('!r} + r[{position}] + ')'"
        return f'(None if r[{position}] is None else {{"@odata.id": {link}, "Id": r[{position}]}})'
    value = code.value(position, column.output.type)
    if column.measure is None:
        return value
    unit = code.column(compiler.value(column.measure), column.measure.type)
    return f'(None if r[{position}] is None else {{"Value": {value}, {column.measure_name!r}: r[{unit}]}})'


def _expansions(applied: ApplyPlanner, table: Table, options: ast.QueryOptions) -> dict[str, ast.ExpandItem]:
    """expandgroup items, and $expand beside $apply, by the path of the reference that was grouped by."""
    known = {column.name.lower(): column for column in table.columns}
    made: dict[str, ast.ExpandItem] = {}
    for item in (*applied.group_expansions, *options.expand):
        name = "/".join(step.name for step in item.path if isinstance(step, ast.NameStep))
        column = known.get(name.lower())
        if column is None:
            unknown(name, [each.name for each in table.columns], Phrase("the result of $apply"))
        if not column.target:
            raise errors.BadRequest(
                errors.BAD_QUERY_OPTION, "$apply", Phrase("{0} is not a reference that was grouped by", name)
            )
        made[name.lower()] = item
    return made


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
        found = [
            each for each in table.columns if each.name.lower() == name or each.name.lower().startswith(f"{name}/")
        ]
        if not found:
            unknown(name, [each.name for each in table.columns], Phrase("the result of $apply"))
        chosen += [each for each in found if each not in chosen]
    return chosen


def plan_concat(
    planner: Planner,
    repository: Repository[Any],
    transformations: Sequence[ast.Transformation],
    options: ast.QueryOptions,
    by: Sequence[str],
) -> ConcatPlan:
    """…/concat(a,b): one plan for each branch, read one after the other (aggregation, 3.6.1)."""
    last = transformations[-1]
    assert isinstance(last, ast.ConcatTransformation)
    if options.filter is not None or options.orderby or options.compute or options.search is not None or options.select:
        raise errors.NotSupported(Phrase("query options beside a concat other than $top, $skip and $count"))
    branches: list[RowsPlan] = []
    for sequence in last.sequences:
        if any(isinstance(each, ast.ConcatTransformation) for each in (*transformations[:-1], *sequence)):
            raise errors.NotSupported(Phrase("concat inside concat"))
        applied = ApplyPlanner(planner)
        source = planner.root(repository)
        scope = entity_scope(source)
        stage: Any = Entities(source, scope, planner.where(source, ast.NO_OPTIONS, scope, by))
        stage = applied.run(stage, (*transformations[:-1], *sequence))
        bare = ast.QueryOptions(expand=options.expand if isinstance(stage, Entities) else ())
        if isinstance(stage, Entities):
            branches.append(planner.entities(stage, bare, context=repository.set_name))
        else:
            branches.append(plan_table(applied, repository, stage, bare))
    return ConcatPlan.of(branches)


def plan_apply(
    planner: Planner, repository: Repository[Any], options: ast.QueryOptions, *, by: Sequence[str]
) -> RowsPlan | ConcatPlan:
    """The plan of a read with $apply and the options behind it.

    $filter is about the result. One that names what only the entities have is about these, as on the reference
    platform: it is asked first.
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
        return planner.entities(stage, rest, context=repository.set_name)
    return plan_table(applied, repository, stage, rest)


__all__ = ["GUID", "plan_concat", "plan_table", "replace"]
