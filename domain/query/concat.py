"""concat of $apply: the rows of several plans, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from domain.query.execute import Statement
from domain.query.fragments import Run
from domain.query.plan import RowsPlan


@dataclass(slots=True)
class ConcatPlan:
    """Reads like one aggregated plan; a row is (branch, row)."""

    branches: tuple[RowsPlan, ...]
    context: str
    fingerprint: str
    keys: tuple[Any, ...] = ()
    aggregated: bool = True
    width: int = 0
    skip_nulls: bool = False

    @classmethod
    def of(cls, branches: Sequence[RowsPlan]) -> ConcatPlan:
        """The plan over these."""
        return cls(tuple(branches), branches[0].context.partition("(")[0], "|".join(b.fingerprint for b in branches))

    def read(self, run: Run, *, with_skip: bool) -> list[tuple[int, tuple[Any, ...]]]:
        """The rows from run.skip on, run.limit at most. A branch is only read as far as it is needed."""
        wanted, passed = run.limit, run.skip if with_skip else 0
        found: list[tuple[int, tuple[Any, ...]]] = []
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
            found += [(index, row) for row in rows]
            wanted -= len(rows)
        return found

    def shaped(self, rows: Sequence[Any], run: Run) -> list[Any]:
        """The rows as JSON-ready values, in order. Raises PayloadTooLarge."""
        made: list[Any] = []
        for index, branch in enumerate(self.branches):
            made += branch.shaped([row for number, row in rows if number == index], run)
        return made

    @property
    def batches(self) -> bool:
        """Whether some of the rows have expansions that are fetched for many at once."""
        return any(branch.batches for branch in self.branches)

    def count(self, run: Run) -> int:
        """How many rows all branches have."""
        statements: list[Statement] = [branch.count_statement for branch in self.branches]
        return sum(int(statement.fetch(run)[0][0]) for statement in statements)


__all__ = ["ConcatPlan"]
