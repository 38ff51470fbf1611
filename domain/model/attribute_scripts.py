"""The engine of JavaScript calculated attributes, which the scripts app registers at start-up (spec 10.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from domain.model.calculated_attributes import Definition
from domain.model.repository import Repository
from identity.context import CallContext

#: Types that a JavaScript attribute may declare; without one its values are texts.
VALUE_TYPES = ("String", "Boolean", "Int32", "Decimal", "Date", "DateTime", "Guid")


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """The script's result for one entity: a canonical value, or an error message in the active language.

    line   of the script, where it is known
    """

    value: Any = None
    error: str = ""
    line: int | None = None


NO_RESULT = ScriptResult()


class ScriptEngine(Protocol):
    """Runs the scripts of calculated attributes."""

    def check(self, source: str) -> None:
        """Raise Refused with the position of a syntax error in the source."""
        ...

    def results(
        self,
        definition: Definition,
        repository: Repository[Any],
        keys: Sequence[str],
        ctx: CallContext,
        *,
        dataset: Any = None,
        depth: int = 0,
    ) -> Mapping[str, ScriptResult]:
        """Key → result for existing entities of the repository, from one run with the rights of the caller.

        dataset: a domain Dataset whose pending changes the script sees; None: stored entities
        depth: number of enclosing scripts

        Raises Unavailable or TooManyRequests if no worker is free.
        """
        ...


_engines: list[ScriptEngine] = []


def register(engine: ScriptEngine) -> None:
    """Register the engine; called once at start-up."""
    _engines[:] = [engine]


def script_engine() -> ScriptEngine:
    """The registered engine."""
    return _engines[0]
