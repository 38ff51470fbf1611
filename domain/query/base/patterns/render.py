"""A pattern's tree as the text that an engine of regular expressions takes, to the same meaning.

Written are only things that both engines read alike: sets with each range, groups that keep nothing, plain
repetitions. Which of several matches is found first does not matter, for only whether there is one is asked.
"""

from __future__ import annotations

from functools import lru_cache

from domain.query.base.patterns import characters
from domain.query.base.patterns.characters import Ranges
from domain.query.base.patterns.tree import Characters, Choice, Edge, Node, Place, Repeat

_SIGNS = frozenset("\\^$.*+?{}[]()|")
_SIGNS_IN_SETS = frozenset("\\^-[]&~|")
#: What no character satisfies.
_NEVER = "(?!)"


def python(tree: Node) -> str:
    """For `re`, with the flag DOTALL."""
    return _text(tree, "\\Z")


@lru_cache(maxsize=256)
def postgresql(tree: Node) -> str:
    """An advanced regular expression of PostgreSQL, for `~`.

    Word edges are written out: `\\y` counts as a letter what the database's locale does.
    """
    return _text(tree, "$")


def _text(node: Node, end: str) -> str:
    if isinstance(node, Characters):
        return _set(node.ranges)
    if isinstance(node, Edge):
        return {Place.START: "^", Place.END: end}.get(node.place) or _word_edges(node.place)
    if isinstance(node, Choice):
        return f"(?:{'|'.join(_text(branch, end) for branch in node.branches)})"
    if isinstance(node, Repeat):
        body = _text(node.body, end)
        is_one = isinstance(node.body, Characters) and body != _NEVER
        return (body if is_one else f"(?:{body})") + _bounds(node)
    return "".join(_text(item, end) for item in node.items)


def _bounds(node: Repeat) -> str:
    if node.most is None:
        return {0: "*", 1: "+"}.get(node.least) or f"{{{node.least},}}"
    if node.least == node.most:
        return f"{{{node.least}}}"
    return f"{{{node.least},{node.most}}}"


def _word_edges(place: Place) -> str:
    """`\\b`: a character of a word on one side and none on the other; `\\B`: the same on both sides."""
    word = _set(characters.WORD)
    before, no_word_before, after, no_word_after = f"(?<={word})", f"(?<!{word})", f"(?={word})", f"(?!{word})"
    if place is Place.WORD_EDGE:
        return f"(?:{before}{no_word_after}|{no_word_before}{after})"
    return f"(?:{before}{after}|{no_word_before}{no_word_after})"


def _set(ranges: Ranges) -> str:
    if ranges == characters.ANY:
        return "."
    is_negated = bool(ranges) and ranges[-1][1] == characters.LAST
    # No text has U+0000, and PostgreSQL takes none.
    written = [
        (max(first, 1), last) for first, last in (characters.complement(ranges) if is_negated else ranges) if last
    ]
    if not written:
        return "." if is_negated else _NEVER
    if len(written) == 1 and written[0][0] == written[0][1] and not is_negated:
        return _escaped(written[0][0], _SIGNS)
    return f"[{'^' if is_negated else ''}{''.join(_range(*each) for each in written)}]"


def _range(first: int, last: int) -> str:
    begin, end = _escaped(first, _SIGNS_IN_SETS), _escaped(last, _SIGNS_IN_SETS)
    return begin if first == last else f"{begin}-{end}"


def _escaped(code: int, signs: frozenset[str]) -> str:
    character = chr(code)
    return f"\\{character}" if character in signs else character
