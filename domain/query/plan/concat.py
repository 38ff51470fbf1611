"""concat of $apply: reads the rows of several plans one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.query.plan.rows_plan import RowsPlan
from domain.query.run.execute import Statement
from domain.query.run.row_json import AnswerSize
from domain.query.sql.fragments import Run


@dataclass(slots=True)
class ConcatPlan:
    """The plan of a concat, with the interface of one aggregated plan; a row is (branch, row)."""

    branches: tuple[RowsPlan, ...]
    context: str
    fingerprint: str
    keys: tuple[Any, ...] = ()
    aggregated: bool = True
    skip_nulls: bool = False

    @classmethod
    def of(cls, branches: Sequence[RowsPlan]) -> ConcatPlan:
        """The plan over the branches."""
        return cls(tuple(branches), branches[0].context.partition("(")[0], "|".join(b.fingerprint for b in branches))

    def read(self, run: Run, *, with_skip: bool) -> list[tuple[int, tuple[Any, ...]]]:
        """At most run.limit rows from run.skip on. Branches are read only as far as needed."""
        wanted, passed = run.limit, run.skip if with_skip else 0
        result: list[tuple[int, tuple[Any, ...]]] = []
        for index, branch in enumerate(self.branches):
            if wanted <= 0:
                break
            inner = Run(run.values, run.ctx, key=run.key, limit=wanted, skip=passed)
            rows = branch.statement(None, with_skip=passed > 0).fetch(inner)
            if passed and not rows:
                total = int(branch.count_statement.fetch(Run(run.values, run.ctx, key=run.key))[0][0])
                passed = max(0, passed - total)
            else:
                passed = 0
            result += [(index, row) for row in rows]
            wanted -= len(rows)
        return result

    def shaped(self, rows: Sequence[Any], run: Run) -> list[Any]:
        """The rows as JSON-ready values, in order. Raises PayloadTooLarge."""
        result: list[Any] = []
        for index, branch in enumerate(self.branches):
            result += branch.shaped([row for number, row in rows if number == index], run)
        return result

    def array(self, rows: Sequence[Any], run: Run) -> Any:
        """The rows as a JSON-ready array. Raises PayloadTooLarge."""
        values = self.shaped(rows, run)
        return AnswerSize().array(values) if any(branch.batches for branch in self.branches) else values

    def count(self, run: Run) -> int:
        """Number of rows of all branches."""
        statements: list[Statement] = [branch.count_statement for branch in self.branches]
        return sum(int(statement.fetch(run)[0][0]) for statement in statements)
