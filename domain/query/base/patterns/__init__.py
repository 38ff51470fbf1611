"""Regular expressions of matchesPattern (5.1.1.5.9): ECMAScript's, with one meaning on every database.

A pattern is read once into a tree (parse), refused if it could cost too much (limits), and written for the engine that
matches it (render): PostgreSQL's own, or Python's in the process that serves the request, which has an automaton of
ours for texts that are long for the pattern (matching).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from domain.query.base.bound import Bound, Fixed, Input
from domain.query.base.patterns import limits, render
from domain.query.base.patterns.matching import matches
from domain.query.base.patterns.parse import PatternError, parse
from foundation import errors
from foundation.phrases import Phrase


def check_pattern(value: Bound, position: int) -> Bound:
    """The pattern operand with its check added; patterns that come from data are refused."""
    if not isinstance(value, Input):
        raise errors.NotSupported(Phrase("matchesPattern with a pattern that is not a literal"))
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
    """Raise BadRequest for a pattern that cannot be read, is not supported or could cost too much."""
    try:
        if len(pattern) > limits.MAX_LENGTH:
            raise PatternError(Phrase("the pattern is longer than {0} characters", limits.MAX_LENGTH))
        limits.check(parse(pattern))
    except PatternError as exc:
        raise errors.BadRequest(errors.TYPE_MISMATCH, position, exc.reason) from exc


def for_postgresql(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The conversion of a pattern operand, and then to what PostgreSQL's `~` takes."""

    def converted(raw: Any) -> Any:
        pattern = convert(raw)
        return None if pattern is None else render.postgresql(parse(pattern))

    return converted


__all__ = ["check_pattern", "check_text", "for_postgresql", "matches"]
