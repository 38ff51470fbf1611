"""Conditions for $apply that an entity is among the rows of an earlier stage, by its key.

A stage with a limit, or with topsum and the like, becomes `key IN (SELECT …)`, so that later stages see its rows only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from domain.query.base.bound import GUID, Bound, Column, Order, Sort
from domain.query.plan.planner import EntityStage, Planner
from domain.query.sql.compiler import Compiler
from domain.query.sql.fragments import Sql, compose, join, select_from
from domain.query.sql.joins import Block


@dataclass(frozen=True, slots=True)
class Share:
    """topsum … bottompercent: the first rows by a value whose sum reaches an amount, or a percentage of the total."""

    order: Order
    amount: Bound
    is_percent: bool

    def holds(self, compiler: Compiler, ties: Sql) -> Sql:
        """The condition that the sum of the rows before this one is below the amount. ties: makes the order total."""
        value, is_top = self.order.expression, self.order.is_descending
        number = compiler.number(value, value.type.scale)
        key = compiler.dialect.order(
            compiler.key(value), is_descending=is_top, nullable=value.nullable, sort=Sort.NUMBER
        )
        # Negative values, which come last from the top, count as 0: the sum must not fall below the amount again.
        counted = compose("CASE WHEN {0} > 0 THEN {0} ELSE {0} * 0 END", number) if is_top else number
        window = join("", [Sql(" OVER (ORDER BY "), key, Sql(", "), ties, Sql(" ROWS UNBOUNDED PRECEDING)")])
        before = compose("(SUM({0}){1} - {0})", counted, window)
        if self.is_percent:
            limit = compose("(SUM({0}) OVER () * {1} / 100.0)", number, compiler.number(self.amount, None))
        else:
            limit = compiler.number(self.amount, value.type.scale)
        return compose("({0} < {1})", before, limit)


@dataclass(frozen=True, slots=True, eq=False)
class LeadingKeys(Bound):
    """Condition: the row is among the leading rows of a stage."""

    stage: EntityStage
    share: Share
    planner: Planner


def _leading_keys(compiler: Compiler, node: LeadingKeys, exact: bool) -> Sql:
    block, inner, where = _inside(compiler, node.stage)
    ties = node.planner.order_list(inner, [_by_key(node.stage)])
    key, holds = block.key(node.stage.source), node.share.holds(inner, ties)
    text = select_from([key + Sql(" AS k"), holds + Sql(" AS keep")], block.from_sql(), where)
    return compose("{0} IN (SELECT k FROM ({1}) r WHERE keep)", compiler.block.key(node.stage.source), text)


def _inside(compiler: Compiler, stage: EntityStage) -> tuple[Block, Compiler, list[Sql]]:
    """(nested block, its compiler, its WHERE); inside, the stage's row variable refers to the inner row."""
    block = Block(compiler.block.statement, stage.source)
    inner = Compiler(block)
    where = [inner.predicate(each) for each in stage.where]
    return block, inner, where


def _by_key(stage: EntityStage) -> Order:
    return Order(Column(GUID, False, stage.source, stage.source.repository.id))


@dataclass(frozen=True, slots=True, eq=False)
class LimitedKeys(Bound):
    """Condition: the row is among those of a limited stage."""

    stage: EntityStage
    planner: Planner
    limit: Callable[[Compiler], Sql]


def _limited_keys(compiler: Compiler, node: LimitedKeys, exact: bool) -> Sql:
    stage = node.stage
    block, inner, where = _inside(compiler, stage)
    order = node.planner.order_list(inner, [*stage.orders, _by_key(stage)])
    text = select_from([block.key(stage.source)], block.from_sql(), where, [order]) + node.limit(inner)
    return compose("{0} IN (SELECT * FROM ({1}) k)", compiler.block.key(stage.source), text)


Compiler.register_predicate(LimitedKeys, _limited_keys)
Compiler.register_predicate(LeadingKeys, _leading_keys)
