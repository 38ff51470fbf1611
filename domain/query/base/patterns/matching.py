"""matchesPattern on SQLite."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from domain.database import time_limit
from domain.query.base.patterns import limits, render
from domain.query.base.patterns.automaton import Automaton
from domain.query.base.patterns.parse import parse
from domain.query.base.patterns.tree import Node


def matches(text: str | None, pattern: str | None) -> bool | None:
    """Whether a pattern that has been checked matches anywhere in the text; null for a null.

    Raises time_limit.QueryTooLong when the query's time is over.
    """
    if text is None or pattern is None:
        return None
    time_limit.check()
    return _matcher(pattern).matches(text)


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Of a pattern the expression for short texts, how long these may be, and the tree for others."""

    tree: Node
    expression: re.Pattern[str]
    max_length: int

    def matches(self, text: str) -> bool:
        if len(text) <= self.max_length:
            return self.expression.search(text) is not None
        return _automaton(self.tree).matches(text)


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> _Matcher:
    tree = parse(pattern)
    return _Matcher(tree, re.compile(render.python(tree), re.DOTALL), limits.max_length(tree))


#: Few, for each may remember some megabytes.
_automaton = lru_cache(maxsize=16)(Automaton)
