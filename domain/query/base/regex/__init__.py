"""Regular expressions of matchesPattern (5.1.1.5.9): ECMAScript syntax with the same meaning on both databases.

A pattern is parsed into a tree (parse), refused if it could cost too much (limits), and rendered for the matching
engine (render): PostgreSQL's or, for SQLite, RE2 in the process of the request (matching).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from domain.query.base.bound import Bound, Fixed, Input
from domain.query.base.regex import limits, render
from domain.query.base.regex.matching import compiled, matches
from domain.query.base.regex.parse import PatternError, parse
from foundation import errors
from foundation.messages import TranslatableMessage as Message


def check_pattern(value: Bound, position: int) -> Bound:
    """Add the check of the pattern to its operand. Raises NotSupported for a pattern that is no literal."""
    if not isinstance(value, Input):
        raise errors.NotSupported(Message("matchesPattern with a pattern that is not a literal"))
    convert = value.convert

    def checked(raw: Any) -> Any:
        pattern = convert(raw)
        if pattern is not None:
            check_text(pattern, position)
        return pattern

    if isinstance(value.origin, Fixed):
        checked(value.origin.value)
    return replace(value, convert=checked)


def check_text(pattern: str, position: int) -> None:
    """Raise BadRequest for a pattern that is invalid, not supported or could cost too much."""
    try:
        if len(pattern) > limits.MAX_LENGTH:
            raise PatternError(Message("the pattern is longer than {0} characters", limits.MAX_LENGTH))
        limits.check(parse(pattern))
        compiled(pattern)  # on PostgreSQL, too: both databases refuse the same patterns
    except PatternError as exc:
        raise errors.BadRequest(errors.TYPE_MISMATCH, position, exc.reason) from exc


def for_postgresql(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Extend the conversion of a pattern operand by the translation for PostgreSQL."""

    def converted(raw: Any) -> Any:
        pattern = convert(raw)
        return None if pattern is None else render.postgresql(parse(pattern))

    return converted


__all__ = ["check_pattern", "check_text", "for_postgresql", "matches"]
