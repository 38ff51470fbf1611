"""Results of scripts in expressions: one run for all rows on which an expression is evaluated (spec 10.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from domain.model.attribute_scripts import NO_RESULT, ScriptResult, script_engine
from domain.model.calculated_attributes import definitions
from domain.model.registry import repositories
from domain.query.base.bound import Bound, Order, Rows, Scripted
from domain.query.run.evaluation import Environment, evaluate
from foundation import errors
from foundation.messages import TranslatableMessage as Message


def runs_script(node: Any) -> bool:
    """Whether the evaluation of an expression may run a script."""
    if isinstance(node, Scripted):
        return True
    if isinstance(node, tuple):
        return any(map(runs_script, node))
    if not isinstance(node, Bound | Rows | Order):
        return False
    return any(runs_script(getattr(node, each.name)) for each in fields(node))


@dataclass(eq=False, slots=True)
class ScriptRows:
    """Rows of one row variable, and the results of the scripts that were run on them.

    dataset, depth   of ScriptEngine.results
    """

    dataset: Any = None
    depth: int = 0
    rows: list[Environment] = field(default_factory=list)
    _results: dict[Scripted, Mapping[str, ScriptResult]] = field(default_factory=dict)

    def result(self, node: Scripted, row: Environment) -> ScriptResult:
        """The script's result for a row; the first call runs it for all of them."""
        key = evaluate(node.key, row)
        if key is None:
            return NO_RESULT
        known = self._results.get(node)
        if known is None:
            known = self._results[node] = self._run(node)
        return known.get(key, NO_RESULT)

    def _run(self, node: Scripted) -> Mapping[str, ScriptResult]:
        repository = repositories[node.repository]
        if self.rows[0].ctx.at is not None:
            # Scripts read the current state of entities, not that of $at.
            raise errors.NotSupported(
                Message("a calculated attribute in JavaScript as of a time"), target=node.attribute
            )
        definition = definitions(repository).get(node.attribute)
        if definition is None:  # deleted since the plan was made
            return {}
        keys = dict.fromkeys(key for each in self.rows if (key := evaluate(node.key, each)) is not None)
        return script_engine().results(
            definition, repository, list(keys), self.rows[0].ctx, dataset=self.dataset, depth=self.depth
        )
