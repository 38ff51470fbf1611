"""Calculated attributes for records of datasets: the bound expression, and the keys of lists over repositories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

from domain.model.repository import Repository
from domain.query.api.cache import plan_for
from domain.query.api.rows import SHAPE
from domain.query.base.access import Access
from domain.query.base.bound import GUID, Bound, Column, CustomText, Rows, Source, fixed, new_root
from domain.query.bind.binder import Binder
from domain.query.bind.calculations import Value
from domain.query.plan.calculated import CalculatedValue, ComputedBatch, ComputedPlan
from domain.query.plan.planner import Planner
from domain.query.rights.policies import visible
from domain.query.run.execute import Statement
from domain.query.sql.compiler import Compiler
from domain.query.sql.fragments import Run, Sql, join, select_from
from foundation import errors
from identity.context import CallContext

#: Maximum of rows of a repository that an evaluation outside the database reads.
MAX_ROWS = 10_000


def bound_attribute(repository: Repository[Any], name: str, ctx: CallContext | None) -> tuple[Source, Value]:
    """The row variable and the expression of a calculated attribute, with the caller's rights; ctx None: all rights.

    Raises BadRequest for an unknown attribute, or one that cannot be evaluated.
    """

    def make() -> tuple[Source, Value]:
        access = Access(ctx.permissions if ctx is not None else None)
        source = new_root(repository)
        value = Binder(access).calculated(source, name)
        if value is None:
            raise errors.BadRequest(errors.UNKNOWN_PROPERTY, name, repository.set_name, target=name)
        return source, value

    return plan_for(("calculated", repository.name, name), ctx, None, make)


def calculated_of(
    repository: Repository[Any], name: str, keys: Sequence[str], ctx: CallContext
) -> dict[str, CalculatedValue]:
    """Key → value of a calculated attribute (API name), of the stored rows that the caller may see."""

    def make() -> ComputedPlan:
        planner = Planner(Access.of(ctx), SHAPE, {})
        planner.access.check_readable(repository)
        plan = planner.batch(ComputedBatch(0, repository, [name]))
        assert isinstance(plan, ComputedPlan)
        return plan

    plan = plan_for(("calculated values", repository.name, name), ctx, None, make)
    return {key: values[name] for key, values in plan.values_of(list(keys), Run((), ctx)).items()}


def root_of(source: Source) -> Source:
    """The row variable that a path of references begins at."""
    while source.parent is not None:
        source = source.parent
    return source


def keys_of_list(rows: Rows, ctx: CallContext, outer: Callable[[Bound], Any]) -> list[str]:
    """The keys of a list over a repository, of the rows that the caller may see; `outer` gives values of other rows."""
    planner = Planner(Access.of(ctx), SHAPE, {})
    own = rows.variable
    block = planner.block(own)
    compiler = Compiler(block)
    conditions = [visible(planner.access, own)] if own.guarded else []
    if rows.predicate is not None:
        conditions.append(with_values(rows.predicate, lambda leaf: root_of(leaf.source) == own, outer))
    predicates = [compiler.predicate(each) for each in conditions if each is not None]
    order = join(", ", [planner.order_text(planner.order_key(compiler, each)) for each in rows.orders])
    key = planner.dialect.output(block.key(own), GUID)
    text = select_from([key], block.from_sql(), predicates, [order])
    limit = MAX_ROWS if rows.limit is None else rows.limit
    statement = Statement.of(text + Sql(f" LIMIT {limit}"), planner.dialect)
    return [row[0] for row in statement.fetch(Run((), ctx))]


def with_values(node: Any, is_own: Callable[[Any], bool], outer: Callable[[Bound], Any]) -> Any:
    """The expression with the values of other rows in place of their columns."""
    return _Replacing(is_own, outer).replaced(node)


class _Replacing:
    def __init__(self, is_own: Callable[[Any], bool], outer: Callable[[Bound], Any]) -> None:
        self._is_own = is_own
        self._outer = outer
        #: Row variables of nested lists.
        self._inner: list[Source] = []

    def replaced(self, node: Any) -> Any:
        """The node with constants in place of columns of other rows."""
        if isinstance(node, tuple):
            return tuple(map(self.replaced, node))
        if isinstance(node, Column | CustomText):
            if self._is_own(node) or root_of(node.source) in self._inner:
                return node
            return fixed(self._outer(node), node.type)
        if not isinstance(node, Bound | Rows):
            return node
        inner = getattr(node, "rows", None)
        if isinstance(inner, Rows):
            self._inner.append(inner.variable)
        return replace(
            node,
            **{
                each.name: self.replaced(value)
                for each in fields(node)
                if isinstance(value := getattr(node, each.name), Bound | Rows | tuple) and each.name != "back"
            },
        )


__all__ = ["CalculatedValue", "bound_attribute", "calculated_of", "keys_of_list", "root_of"]
