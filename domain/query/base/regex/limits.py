"""Limits the cost of a pattern, equally on both databases.

A repetition may not contain another repetition or an alternative, at most three repetitions may have no small upper
bound, and those with one must not be able to divide a text in too many ways. A pattern of `.*` between texts may have
any number of them.
"""

from __future__ import annotations

from domain.query.base.regex import characters
from domain.query.base.regex.parse import PatternError
from domain.query.base.regex.tree import Characters, Choice, Edge, Node, Place, Repeat, Sequence, items_of, parts_of
from foundation.messages import TranslatableMessage as Message

MAX_LENGTH = 500
MAX_OPEN_REPEATS = 3
#: Upper bounds up to this are small.
MAX_BOUND = 20
#: Number of ways in which repetitions with a small bound can divide a text: `a{0,20}` has 21, `a{0,20}b?` has 42.
MAX_WAYS = 1_000
#: Size of the pattern with its repetitions expanded.
MAX_SIZE = 5_000
#: PostgreSQL needs a lookaround for each; twenty between optional characters take seconds.
MAX_WORD_EDGES = 10


def check(tree: Node) -> None:
    """Raise PatternError for a pattern that could cost too much."""
    if _size(tree) > MAX_SIZE:
        raise PatternError(Message("the pattern, its repetitions written out, is longer than {0} characters", MAX_SIZE))
    if sum(isinstance(part, Edge) and part.place in _WORD_EDGES for part in parts_of(tree)) > MAX_WORD_EDGES:
        raise PatternError(Message("the pattern has more than {0} word edges", MAX_WORD_EDGES))
    if _has_only_wildcards(tree):
        return
    if _ways(tree) > MAX_WAYS:
        raise PatternError(
            Message("the pattern has optional parts that can share a text in more than {0} ways", MAX_WAYS)
        )
    if _open_repeats(tree) > MAX_OPEN_REPEATS:
        raise PatternError(
            Message("the pattern has more than {0} repetitions without an upper bound", MAX_OPEN_REPEATS)
        )
    if _runs_away(tree, inside_repeat=False):
        raise PatternError(Message("the pattern repeats what itself repeats or branches"))


_WORD_EDGES = (Place.WORD_EDGE, Place.NO_WORD_EDGE)


def _size(tree: Node) -> int:
    if isinstance(tree, Sequence):
        return sum(map(_size, tree.items))
    if isinstance(tree, Choice):
        return sum(map(_size, tree.branches))
    if isinstance(tree, Repeat):
        return _size(tree.body) * max(tree.least, tree.most or 0, 1)
    return 1


def _open_repeats(tree: Node) -> int:
    """Number of repetitions without a small bound: each multiplies the time by the length of the text."""
    return sum(isinstance(part, Repeat) and (part.most is None or part.most > MAX_BOUND) for part in parts_of(tree))


def _ways(tree: Node) -> int:
    """Number of ways in which repetitions with a small bound, and alternatives, can match."""
    if isinstance(tree, Choice):
        return sum(map(_ways, tree.branches))
    if isinstance(tree, Repeat):
        is_small = tree.most is not None and tree.most <= MAX_BOUND
        return _ways(tree.body) * (tree.most - tree.least + 1 if is_small and tree.most is not None else 1)
    ways = 1
    for item in tree.items if isinstance(tree, Sequence) else ():
        ways *= _ways(item)
    return ways


def _runs_away(tree: Node, *, inside_repeat: bool) -> bool:
    """Whether a repetition contains a repetition or an alternative."""
    if isinstance(tree, Choice):
        return inside_repeat or any(_runs_away(branch, inside_repeat=False) for branch in tree.branches)
    if isinstance(tree, Repeat):
        return inside_repeat or _runs_away(tree.body, inside_repeat=True)
    return isinstance(tree, Sequence) and any(_runs_away(item, inside_repeat=inside_repeat) for item in tree.items)


def _has_only_wildcards(tree: Node) -> bool:
    """Whether the pattern has only `.*`, single characters, `^` and `$`."""
    return all(
        (item.least, item.most, item.body) in ((0, None, _DOT), (0, None, _DOT_ALL))
        if isinstance(item, Repeat)
        else isinstance(item, Characters | Edge)
        for item in items_of(tree)
    )


_DOT, _DOT_ALL = Characters(characters.IN_LINE), Characters(characters.ANY)
