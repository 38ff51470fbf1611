"""A comparison of conditions."""

from typing import Any

from foundation.kinds import Kind
from rules.conditions import Comparison, Operand, comparisons


@comparisons.register
class StartsWith(Comparison):
    """The text begins with the value."""

    name = "Starts_With"
    number = 1000
    kinds = frozenset({Kind.STRING})

    def holds(self, operand: Operand, actual: Any, expected: Any) -> bool:
        """Null begins with nothing."""
        return actual is not None and str(actual).startswith(expected)
