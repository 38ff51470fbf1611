"""matchesPattern on SQLite: RE2, whose time is proportional to the text for every pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from domain.database import time_limit
from domain.query.base.regex import render
from domain.query.base.regex.parse import PatternError, parse
from foundation.messages import TranslatableMessage as Message

#: Memory of one compiled pattern with its automaton.
_MAX_MEGABYTES = 8
_MAX_COMPILED = 16


def matches(text: str | None, pattern: str | None) -> bool | None:
    """Whether a checked pattern matches anywhere in the text; null for null.

    Raises time_limit.QueryTooLong if the query's time is over.
    """
    if text is None or pattern is None:
        return None
    time_limit.check()
    return compiled(pattern).search(text.encode()) is not None


@lru_cache(maxsize=_MAX_COMPILED)
def compiled(pattern: str) -> Any:
    """The RE2 pattern, for texts in UTF-8. Raises PatternError if it needs too much memory."""
    # Matches bytes: for a str the binding would compute character positions, which takes longer than the search.
    expression = render.re2(parse(pattern)).encode()
    options = re2.Options()
    options.max_mem = _MAX_MEGABYTES << 20
    options.never_capture = options.dot_nl = True
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as exc:
        raise PatternError(Message("the pattern needs more than {0} megabytes", _MAX_MEGABYTES)) from exc
    finally:
        # The binding itself caches a hundred compiled patterns.
        re2.purge()
