"""Regular expressions of matchesPattern (5.1.1.5.9), kept to those that cannot run away.

SQLite matches with Python's backtracking engine, where a pattern such as `(a+)+$` takes exponential time and no timeout
helps. A pattern may therefore not repeat something that itself repeats or branches, nor look around or refer back; only
three repetitions may be without a small upper bound, and the others may not be many. The same rules hold on PostgreSQL,
so that both answer alike. A pattern of `.*` between texts may have any number of them: it is matched in one pass.

What remains takes time that grows with a power of the text's length. SQLite therefore answers null for a text that is
too long for its pattern (MAX_STEPS): some 250 characters with three open repetitions and no `^`, 60,000 with one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from domain import wildcards
from domain.query.bound import Bound, Input
from foundation import errors
from foundation.phrases import Phrase

#: The standard library's own parser of patterns; nobody has written down its types.
_parser: Any = import_module("re._parser")

MAX_LENGTH = 500
MAX_OPEN_REPEATS = 3
MAX_BOUND = 20
#: Ways in which the repetitions with a small upper bound can share a text: `a{0,20}` has 21, `a{0,20}b?` has 42.
MAX_WAYS = 1_000
#: Of the matching engine on one text, about a nanosecond each; most of them are left out.
MAX_STEPS = 4_000_000_000
_REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
_GROUPS: Mapping[str, Callable[[Any], Any]] = {
    "SUBPATTERN": lambda argument: argument[-1],
    "ATOMIC_GROUP": lambda argument: argument,
}
_START = ("AT", _parser.AT_BEGINNING)
_END = ("AT", _parser.AT_END)
_REFUSED = {"ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS"}


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

    made = replace(value, convert=checked)
    from domain.query.bound import Fixed

    if isinstance(value.origin, Fixed):
        checked(value.origin.value)
    return made


def check_text(pattern: str, position: int) -> None:
    """Raise BadRequest for a pattern that could run away, or that is none."""
    if len(pattern) > MAX_LENGTH:
        _refuse(position, Phrase("the pattern is longer than {0} characters", MAX_LENGTH))
    try:
        tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as exc:
        reason = Phrase("the pattern cannot be read from its character {0} on", getattr(exc, "pos", None) or 0)
        raise errors.BadRequest(errors.TYPE_MISMATCH, position, reason, info=str(exc)) from exc
    if _wildcard_parts(tree) is not None:
        return
    if _ways(tree) > MAX_WAYS:
        _refuse(
            position, Phrase("the pattern has optional parts that can share a text in more than {0} ways", MAX_WAYS)
        )
    if _open_repeats(tree) > MAX_OPEN_REPEATS:
        _refuse(position, Phrase("the pattern has more than {0} repetitions without an upper bound", MAX_OPEN_REPEATS))
    if _wild(tree, inside_repeat=False):
        _refuse(position, Phrase("the pattern repeats what itself repeats or branches, looks around or refers back"))


def _refuse(position: int, reason: str) -> None:
    raise errors.BadRequest(errors.TYPE_MISMATCH, position, reason)


def _open_repeats(tree: Any) -> int:
    """How many repetitions may go on for the whole text: each multiplies the time by its length."""
    found = 0
    for operation, argument in tree:
        name = str(operation)
        if name in _REPEATS:
            found += int(argument[1]) > MAX_BOUND
            found += _open_repeats(argument[2])
        elif name == "BRANCH":
            found += sum(_open_repeats(branch) for branch in argument[1])
        elif name in _GROUPS:
            found += _open_repeats(_GROUPS[name](argument))
    return found


def _ways(tree: Any) -> int:
    """In how many ways the repetitions with a small bound, and branches, can be gone through."""
    ways = 1
    for operation, argument in tree:
        name = str(operation)
        if name in _REPEATS:
            least, most, body = argument
            ways *= _ways(body) * (int(most) - int(least) + 1 if int(most) <= MAX_BOUND else 1)
        elif name == "BRANCH":
            ways *= sum(_ways(branch) for branch in argument[1])
        elif name in _GROUPS:
            ways *= _ways(_GROUPS[name](argument))
    return ways


def _wildcard_parts(tree: Any) -> tuple[str, ...] | None:
    """The texts between the `.*` of a pattern that has nothing else, as domain.wildcards takes them; None of others."""
    if tree.state.flags & (re.IGNORECASE | re.MULTILINE | re.VERBOSE):
        return None
    operations = [(str(operation), argument) for operation, argument in tree]
    starts = operations[:1] == [_START]
    ends = operations[-1:] == [_END]
    parts = [""] if starts else ["", ""]
    for name, argument in operations[starts : len(operations) - ends]:
        if name == "LITERAL":
            parts[-1] += chr(argument)
        elif name in ("MAX_REPEAT", "MIN_REPEAT") and argument[:2] == (0, _parser.MAXREPEAT) and _is_any(argument[2]):
            parts.append("")
        else:
            return None
    return tuple(parts) if ends else (*parts, "")


def _is_any(body: Any) -> bool:
    return [str(operation) for operation, _ in body] == ["ANY"]


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Of a pattern of wildcards its parts, of others the expression and how long a text it may be asked of."""

    parts: tuple[str, ...] | None
    expression: re.Pattern[str]
    longest: int


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> _Matcher:
    expression = re.compile(pattern, re.DOTALL)  # as PostgreSQL, where `.` is any character
    tree = _parser.parse(pattern)
    loops = _open_repeats(tree) + (0 if tree and tree[0] == (_parser.AT, _parser.AT_BEGINNING) else 1)
    longest = int((MAX_STEPS / _ways(tree)) ** (1 / loops)) if loops else MAX_STEPS
    return _Matcher(_wildcard_parts(tree), expression, longest)


def matches(text: str | None, pattern: str | None) -> bool | None:
    """matchesPattern on SQLite; null for a null, and for a text that is too long for its pattern."""
    if text is None or pattern is None:
        return None
    matcher = _matcher(pattern)
    if matcher.parts is not None:
        return wildcards.matches(matcher.parts, text)
    return matcher.expression.search(text) is not None if len(text) <= matcher.longest else None


def _wild(tree: Any, *, inside_repeat: bool) -> bool:
    for operation, argument in tree:
        name = str(operation)
        if name in _REFUSED:
            return True
        if name in _REPEATS:
            least, most, body = argument
            many = most != least or most > 1
            if (inside_repeat and many) or _wild(body, inside_repeat=inside_repeat or many):
                return True
        elif name == "BRANCH":
            if inside_repeat or any(_wild(branch, inside_repeat=False) for branch in argument[1]):
                return True
        elif name in _GROUPS and _wild(_GROUPS[name](argument), inside_repeat=inside_repeat):
            return True
    return False
