"""Patterns of Like (spec 05, 5.2): `*` and `%` stand for any text, `?` and `_` for any one character, in any case.

A backslash before one of these four, or before a backslash, makes it stand for itself; elsewhere it is a character like
any other. Matching takes time proportional to the text. A regular expression with many `.*` can take hours over a
hostile text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: An escaped character, a wildcard, or a run of other characters.
_PIECE = re.compile(r"\\[*%?_\\]|[*%]+|[?_]|[^*%?_\\]+|\\")

#: The parts of a pattern between its any-text wildcards; None stands for any one character.
Part = tuple[str | None, ...]


def parse(text: str) -> tuple[Part, ...]:
    """The parts of a pattern between its any-text wildcards; one part if it has none."""
    parts: list[list[str | None]] = [[]]
    for piece in _PIECE.findall(text):
        if piece[0] in "*%":
            parts.append([])
        elif piece in "?_":
            parts[-1].append(None)
        elif len(piece) == 2 and piece[0] == "\\":
            parts[-1].append(piece[1])
        else:
            parts[-1].extend(piece)
    return tuple(map(tuple, parts))


class Pattern:
    """A compiled pattern; case is folded as Unicode does (`strasse` matches `Straße`)."""

    __slots__ = ("_automaton", "_texts")

    def __init__(self, text: str) -> None:
        parts = parse(text)
        self._texts: tuple[str, ...] | None = None
        self._automaton: _Automaton | None = None
        if any(None in part for part in parts):
            self._automaton = _Automaton(parts)
        else:
            self._texts = tuple("".join(filter(None, part)).casefold() for part in parts)

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        if self._automaton is not None:
            return self._automaton.accepts(text)
        assert self._texts is not None
        return are_in_order(self._texts, text.casefold())


def are_in_order(parts: Sequence[str], text: str) -> bool:
    """Whether the text consists of the parts in order, with any text (also none) between them.

    Each part is searched for once, from left to right, so the time is proportional to the text and the parts.
    """
    first, *rest = parts
    if not rest:
        return text == first
    *middle, last = rest
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        result = text.find(part, position, end)
        if result < 0:
            return False
        position = result + len(part)
    return True


class _Automaton:
    """A nondeterministic automaton as a bit set: bit n is set while the pattern's first n characters have matched.

    A character of the text that folds to several ("ß" to "ss") is still one character for the wildcard.
    """

    __slots__ = ("_any", "_final", "_loops", "_moves")

    def __init__(self, parts: Sequence[Part]) -> None:
        self._moves: dict[str, int] = {}
        self._any = self._loops = 0
        position = 0
        for number, part in enumerate(parts):
            if number:
                self._loops |= 1 << position
            for character in part:
                if character is None:
                    self._any |= 1 << position
                    position += 1
                    continue
                for folded in character.casefold():
                    self._moves[folded] = self._moves.get(folded, 0) | 1 << position
                    position += 1
        self._final = 1 << position

    def accepts(self, text: str) -> bool:
        """Whether the whole text matches."""
        moves, any_one, loops = self._moves, self._any, self._loops
        state = 1
        for character in text:
            before = state
            for folded in character.casefold():
                state = (state & moves.get(folded, 0)) << 1 | state & loops
            state |= (before & any_one) << 1
            if not state:
                return False
        return bool(state & self._final)
