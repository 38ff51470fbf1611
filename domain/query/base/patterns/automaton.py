"""Matching in time that grows with the text alone: an automaton that is built as texts are read.

Python's `re` goes back and forth, and over a long text takes a power of its length. Here a text is read once; what
could go on at a character (a set of steps of the pattern) is found out once and remembered by character.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from domain.database import time_limit
from domain.query.base.patterns import characters
from domain.query.base.patterns.characters import Ranges
from domain.query.base.patterns.tree import Characters, Choice, Edge, Node, Place, Repeat, Sequence

#: Steps in all the states that are remembered: some three megabytes.
_MAX_REMEMBERED = 50_000
#: What a transition counts for.
_TRANSITION = 3
#: Characters between two looks at the clock.
_CHUNK = 2_000


@dataclass(slots=True, eq=False)
class _Step:
    """A step of the pattern: a character or a place that it asks for, and what may come then.

    Without `after` the pattern has matched.
    """

    after: list[_Step] = field(default_factory=list)
    ranges: Ranges | None = None
    place: Place | None = None


@dataclass(slots=True, eq=False)
class _State:
    """Where reading a text has got to.

    steps    that may come, places and choices not yet looked into
    before   the character before, as places see it: None at the start, else whether it is of a word
    next     character → the state behind it; None: the pattern matches
    at_end   whether it matches if the text ends here
    """

    steps: frozenset[_Step]
    before: bool | None
    next: dict[str, _State | None] = field(default_factory=dict)
    at_end: bool | None = None


class Automaton:
    """Finds out whether a pattern matches anywhere in a text."""

    def __init__(self, tree: Node) -> None:
        self._begin = _build(tree, _Step())
        self._forget()

    def _forget(self) -> None:
        self._remembered = 0
        self._states: dict[tuple[frozenset[_Step], bool | None], _State] = {}
        self._initial = self._state([self._begin], None)

    def matches(self, text: str) -> bool:
        """Whether it matches. Raises time_limit.QueryTooLong when the query's time is over."""
        state = self._initial
        for start in range(0, len(text), _CHUNK):
            time_limit.check()
            for character in text[start : start + _CHUNK]:
                try:
                    after = state.next[character]
                except KeyError:
                    after = self._read(state, character)
                if after is None:
                    return True
                state = after
        if state.at_end is None:
            state.at_end = any(not step.after for step in _reachable(state, None))
        return state.at_end

    def _read(self, state: _State, character: str) -> _State | None:
        if self._remembered >= _MAX_REMEMBERED:
            self._forget()
        self._remembered += _TRANSITION
        code = ord(character)
        is_word = characters.contains(characters.WORD, code)
        after = [self._begin]
        for step in _reachable(state, is_word):
            if not step.after:
                state.next[character] = None
                return None
            if step.ranges is not None and characters.contains(step.ranges, code):
                after += step.after
        state.next[character] = made = self._state(after, is_word)
        return made

    def _state(self, steps: list[_Step], before: bool | None) -> _State:
        key = frozenset(steps), before
        if key not in self._states:
            self._states[key] = _State(*key)
            self._remembered += len(key[0])
        return self._states[key]


def _reachable(state: _State, following: bool | None) -> Iterator[_Step]:
    """The steps that ask for a character, or the one that matches, when the next character is of a word, is none of
    one, or (None) there is none."""
    seen = set(state.steps)
    left = list(state.steps)
    while left:
        step = left.pop()
        if step.ranges is not None or not step.after:
            yield step
        elif step.place is None or _holds(step.place, state.before, following):
            new = [each for each in step.after if each not in seen]
            seen.update(new)
            left += new


def _holds(place: Place, before: bool | None, following: bool | None) -> bool:
    if place is Place.START:
        return before is None
    if place is Place.END:
        return following is None
    return (bool(before) is not bool(following)) is (place is Place.WORD_EDGE)


def _build(node: Node, after: _Step) -> _Step:
    """The first step of what goes on with `after`."""
    if isinstance(node, Characters):
        return _Step([after], ranges=node.ranges)
    if isinstance(node, Edge):
        return _Step([after], place=node.place)
    if isinstance(node, Choice):
        return _Step([_build(branch, after) for branch in node.branches])
    if isinstance(node, Sequence):
        for item in reversed(node.items):
            after = _build(item, after)
        return after
    return _build_repeat(node, after)


def _build_repeat(node: Repeat, after: _Step) -> _Step:
    first = after
    if node.most is None:
        first = _Step()
        first.after += [_build(node.body, first), after]
    else:
        for _ in range(node.most - node.least):
            first = _Step([_build(node.body, first), after])
    for _ in range(node.least):
        first = _build(node.body, first)
    return first
