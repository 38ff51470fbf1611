"""Renders a pattern's tree as a regular expression of an engine, with the same meaning in each engine.

The text uses only syntax that both engines share: sets as lists of ranges, non-capturing groups, plain repetitions. It
preserves whether a pattern matches, not which of several matches is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from domain.query.base.regex import characters
from domain.query.base.regex.characters import Ranges
from domain.query.base.regex.tree import Characters, Choice, Edge, Node, Place, Repeat

_SIGNS = frozenset("\\^$.*+?{}[]()|")
_SIGNS_IN_SETS = frozenset("\\^-[]&~|")


@dataclass(frozen=True, slots=True)
class _Engine:
    """Engine-specific syntax: the empty set, `\\b` and `\\B`."""

    never: str
    word_edge: str
    no_word_edge: str


_RE2 = _Engine(r"[^\x00-\x{10FFFF}]", r"\b", r"\B")
#: Word boundaries are written as lookarounds: the letters of `\y` depend on the database's locale.
_POSTGRESQL = _Engine(
    "(?!)",
    "(?:(?<=[0-9A-Z_a-z])(?![0-9A-Z_a-z])|(?<![0-9A-Z_a-z])(?=[0-9A-Z_a-z]))",
    "(?:(?<=[0-9A-Z_a-z])(?=[0-9A-Z_a-z])|(?<![0-9A-Z_a-z])(?![0-9A-Z_a-z]))",
)


def re2(tree: Node) -> str:
    """A regular expression of RE2, with its option dot_nl."""
    return _text(tree, _RE2)


@lru_cache(maxsize=256)
def postgresql(tree: Node) -> str:
    """An advanced regular expression of PostgreSQL, for `~`."""
    return _text(tree, _POSTGRESQL)


def _text(node: Node, engine: _Engine) -> str:
    if isinstance(node, Characters):
        return _set(node.ranges) or engine.never
    if isinstance(node, Edge):
        edges = {Place.START: "^", Place.END: "$", Place.WORD_EDGE: engine.word_edge}
        return edges.get(node.place, engine.no_word_edge)
    if isinstance(node, Choice):
        return f"(?:{'|'.join(_text(branch, engine) for branch in node.branches)})"
    if isinstance(node, Repeat):
        body = _text(node.body, engine)
        is_one = isinstance(node.body, Characters) and body != engine.never
        return (body if is_one else f"(?:{body})") + _bounds(node)
    return "".join(_text(item, engine) for item in node.items)


def _bounds(node: Repeat) -> str:
    if node.most is None:
        return {0: "*", 1: "+"}.get(node.least) or f"{{{node.least},}}"
    if node.least == node.most:
        return f"{{{node.least}}}"
    return f"{{{node.least},{node.most}}}"


def _set(ranges: Ranges) -> str:
    """The set in the syntax of both engines; "" if no character of a text is in it."""
    if ranges == characters.ANY:
        return "."
    is_negated = bool(ranges) and ranges[-1][1] == characters.LAST
    # Texts do not contain U+0000, and PostgreSQL does not accept it.
    written = [
        (max(first, 1), last) for first, last in (characters.complement(ranges) if is_negated else ranges) if last
    ]
    if not written:
        return "." if is_negated else ""
    if len(written) == 1 and written[0][0] == written[0][1] and not is_negated:
        return _escaped(written[0][0], _SIGNS)
    return f"[{'^' if is_negated else ''}{''.join(_range(*each) for each in written)}]"


def _range(first: int, last: int) -> str:
    begin, end = _escaped(first, _SIGNS_IN_SETS), _escaped(last, _SIGNS_IN_SETS)
    return begin if first == last else f"{begin}-{end}"


def _escaped(code: int, signs: frozenset[str]) -> str:
    character = chr(code)
    return f"\\{character}" if character in signs else character
