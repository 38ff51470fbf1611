"""From the text of a pattern to its tree: ECMAScript's regular expressions (ECMA-262, 22.2.1) with code points.

What the grammar has besides and this service does not is refused by name: looking around, references to groups,
options for lines. So is what only other dialects know (`\\A`, `(?P<…>)`, `a++`, `[[:alpha:]]`), where ECMAScript would
take some of it for something else. Taken in addition: options at the very beginning, `(?i)`, and where nothing else
can be meant, `{`, `}` and `]` as themselves and a backslash before any sign.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn

from domain.query.base.patterns import characters
from domain.query.base.patterns.characters import Ranges
from domain.query.base.patterns.tree import Characters, Edge, Node, Place, choice, repeat, sequence
from foundation.phrases import Phrase

#: As far as PostgreSQL counts.
MAX_COUNT = 255
MAX_DEPTH = 50

_REPETITION = re.compile(r"[*+?]|\{(\d{1,9})(?:(,)(\d{1,9})?)?\}")
_BOUNDS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_OPTIONS = re.compile(r"\(\?([a-z]*)(?:-([a-z]*))?([:)])")
_NAME = re.compile(r"\(\?<([^\W\d]\w*)>")
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_HEXADECIMAL = re.compile(r"x([0-9A-Fa-f]{2})|u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})")
_LOW_SURROGATE = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_PROPERTY = re.compile(r"[pP]\{([^{}]*)\}")
_NO_LOWER_BOUND = re.compile(r"\{,\d+\}")
_CONTROL_LETTER = re.compile("c([A-Za-z])")
_POSIX_CLASS = re.compile(r"\[([:.=])[^\]]*?\1\]")
#: What begins a group that is none here → what it is called.
_GROUPS = {
    "(?=": Phrase("a look ahead"),
    "(?!": Phrase("a look ahead"),
    "(?<=": Phrase("a look behind"),
    "(?<!": Phrase("a look behind"),
    "(?>": Phrase("an atomic group"),
    "(?#": Phrase("a comment"),
    "(?P": Phrase("a group with a name as in Python, instead of {0}", "(?<name>…)"),
}


class PatternError(Exception):
    """A pattern that is not taken. reason is a phrase."""

    def __init__(self, reason: Phrase) -> None:
        super().__init__(reason)
        self.reason = reason


@lru_cache(maxsize=256)
def parse(pattern: str) -> Node:
    """The tree of a pattern. Raises PatternError where it cannot be read or has what is not supported."""
    return _Reader(pattern).whole()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.ignore_case = False
        self.dot_all = False

    # --- moving on ------------------------------------------------------------------------------------------------

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def accept(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def accept_match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def unreadable(self, why: Phrase, at: int) -> NoReturn:
        raise PatternError(Phrase("the pattern cannot be read from its position {0} on: {1}", at, why))

    def unsupported(self, what: Phrase, at: int) -> NoReturn:
        raise PatternError(Phrase("the pattern has what is not supported at its position {0}: {1}", at, what))

    # --- the grammar ----------------------------------------------------------------------------------------------

    def whole(self) -> Node:
        begin = self.at
        options = _OPTIONS.match(self.text)
        if options is not None and options[3] == ")" and options[1] and options[2] is None:
            self.at = options.end()
            self.set_options(options, begin)
        node = self.disjunction()
        if self.at < len(self.text):
            self.unreadable(Phrase("a parenthesis is closed that was not opened"), self.at)
        return node

    def disjunction(self) -> Node:
        branches = [self.alternative()]
        while self.accept("|"):
            branches.append(self.alternative())
        return choice(branches)

    def alternative(self) -> Node:
        items: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            items.append(self.term())
        return sequence(items)

    def term(self) -> Node:
        begin = self.at
        if _REPETITION.match(self.text, self.at) is not None:
            self.nothing_to_repeat()
        node = self.atom()
        is_place = isinstance(node, Edge) and self.text[begin] != "("
        if _REPETITION.match(self.text, self.at) is not None and is_place:
            self.nothing_to_repeat()
        return self.repeated(node)

    def repeated(self, node: Node) -> Node:
        begin = self.at
        found = self.accept_match(_REPETITION)
        if found is None:
            if _NO_LOWER_BOUND.match(self.text, self.at):
                self.unsupported(Phrase("a repetition without a lower bound"), self.at)
            return node
        least, most = _bounds(found)
        if max(least, most or 0) > MAX_COUNT:
            self.unsupported(Phrase("more than {0} repetitions", MAX_COUNT), begin)
        if most is not None and least > most:
            self.unreadable(Phrase("the bounds are out of order"), begin)
        if not self.accept("?") and self.peek() == "+":
            self.unsupported(Phrase("a possessive repetition"), begin)
        if _REPETITION.match(self.text, self.at) is not None:
            self.nothing_to_repeat()
        return repeat(node, least, most)

    def nothing_to_repeat(self) -> NoReturn:
        self.unreadable(Phrase("there is nothing to repeat"), self.at)

    def atom(self) -> Node:
        begin = self.at
        character = self.text[begin]
        if character == "(":
            return self.group()
        if character == "[":
            return Characters(self.set())
        self.at += 1
        if character == "^":
            return Edge(Place.START)
        if character == "$":
            return Edge(Place.END)
        if character == ".":
            return Characters(characters.ANY if self.dot_all else characters.IN_LINE)
        if character != "\\":
            return Characters(self.cased(self.literal(character, begin)))
        if self.accept("b"):
            return Edge(Place.WORD_EDGE)
        if self.accept("B"):
            return Edge(Place.NO_WORD_EDGE)
        return Characters(self.escape(begin)[0])

    def group(self) -> Node:
        begin = self.at
        before = self.ignore_case, self.dot_all
        self.open_group()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.unsupported(Phrase("groups nested deeper than {0} levels", MAX_DEPTH), begin)
        node = self.disjunction()
        if not self.accept(")"):
            self.unreadable(Phrase("a group is not closed"), begin)
        self.depth -= 1
        self.ignore_case, self.dot_all = before
        return node

    def open_group(self) -> None:
        begin = self.at
        if not self.text.startswith("(?", begin):
            self.at += 1
            return
        for start, name in _GROUPS.items():
            if self.text.startswith(start, begin):
                self.unsupported(name, begin)
        options = self.accept_match(_OPTIONS)
        if options is not None and options[3] == ":":
            self.set_options(options, begin)
        elif options is not None:
            self.unsupported(Phrase("an option that is not at the beginning, instead of {0}", "(?i:…)"), begin)
        elif not self.accept_match(_NAME):
            self.unsupported(Phrase("the group {0}", self.text[begin : begin + 3]), begin)

    def set_options(self, options: re.Match[str], begin: int) -> None:
        on, off = options[1], options[2] or ""
        for option in on + off:
            if option not in "is":
                self.unsupported(Phrase("the option {0}", option), begin)
        self.ignore_case = "i" not in off and (self.ignore_case or "i" in on)
        self.dot_all = "s" not in off and (self.dot_all or "s" in on)

    # --- characters -----------------------------------------------------------------------------------------------

    def literal(self, character: str, begin: int) -> Ranges:
        if characters.is_surrogate(ord(character)):
            self.unsupported(Phrase("half of a character"), begin)
        return characters.of(character)

    def cased(self, ranges: Ranges) -> Ranges:
        return characters.in_any_case(ranges) if self.ignore_case else ranges

    def set(self) -> Ranges:
        """`[…]`; closed at the first `]`, so `[]` has no character and `[^]` has any."""
        begin = self.at
        self.at += 1
        is_negated = self.accept("^")
        found: list[tuple[int, int]] = []
        while not self.accept("]"):
            if not self.peek():
                self.unreadable(Phrase("a set of characters is not closed"), begin)
            posix = _POSIX_CLASS.match(self.text, self.at)
            if posix is not None:
                self.unsupported(Phrase("the class {0}", posix[0]), self.at)
            found += self.range()
        ranges = self.cased(characters.normalized(found))
        return characters.complement(ranges) if is_negated else ranges

    def range(self) -> Ranges:
        """A member of a set: a character, an escape or `a-z`."""
        begin = self.at
        first, is_class = self.member()
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("", "]"):
            return first
        self.at += 1
        last, is_class_too = self.member()
        if is_class or is_class_too:
            self.unsupported(Phrase("a range from or to a class"), begin)
        if first[0][0] > last[0][0]:
            self.unreadable(Phrase("the range is out of order"), begin)
        return ((first[0][0], last[0][0]),)

    def member(self) -> tuple[Ranges, bool]:
        begin = self.at
        character = self.text[begin]
        self.at += 1
        if character != "\\":
            return self.literal(character, begin), False
        if self.accept("b"):
            return characters.of("\b"), False
        return self.escape(begin, in_set=True)

    def escape(self, begin: int, *, in_set: bool = False) -> tuple[Ranges, bool]:
        """What follows a backslash: the characters, and whether they are a class."""
        character = self.peek()
        if not character:
            self.unreadable(Phrase("the escape is not complete"), begin)
        known = self.class_escape(begin)
        if known is not None:
            return known, True
        ranges = self.character_escape(begin)
        return (ranges if in_set else self.cased(ranges)), False

    def class_escape(self, begin: int) -> Ranges | None:
        letter = self.peek()
        ranges: Ranges | None = {"d": characters.DIGITS, "w": characters.WORD, "s": characters.SPACES}.get(
            letter.lower()
        )
        found = self.accept_match(_PROPERTY)
        if found is not None:
            ranges = characters.category(found[1])
            if ranges is None:
                self.unsupported(Phrase("the property {0}", found[1]), begin)
        elif ranges is not None:
            self.at += 1
        else:
            return None
        ranges = self.cased(ranges)
        return characters.complement(ranges) if letter.isupper() else ranges

    def character_escape(self, begin: int) -> Ranges:
        found = self.accept_match(_HEXADECIMAL)
        if found is not None:
            return self.code(int(found[1] or found[2] or found[3], 16), begin)
        control = self.accept_match(_CONTROL_LETTER)
        if control is not None:
            return characters.of(chr(ord(control[1]) % 32))
        character = self.peek()
        self.at += 1
        if character in _CONTROLS:
            return characters.of(_CONTROLS[character])
        if character == "0" and not self.peek().isdigit():
            return characters.of("\0")
        if character in "123456789k":
            self.unsupported(Phrase("a reference to a group"), begin)
        if character.isalnum():
            self.unsupported(Phrase("the escape {0}", f"\\{character}"), begin)
        return self.literal(character, begin)

    def code(self, code: int, begin: int) -> Ranges:
        if code > characters.LAST:
            self.unreadable(Phrase("there is no such character"), begin)
        if characters.is_surrogate(code):
            low = self.accept_match(_LOW_SURROGATE) if code < 0xDC00 else None
            if low is None:
                self.unsupported(Phrase("half of a character"), begin)
            code = 0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
        return ((code, code),)


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    """Of a repetition the least and the most."""
    if found[1] is None:
        return _BOUNDS[found[0]]
    least = int(found[1])
    if found[2] is None:
        return least, least
    return least, int(found[3]) if found[3] is not None else None
