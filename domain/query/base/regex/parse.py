"""Parses regular expressions of ECMAScript (ECMA-262, 22.2.1) by code points.

Errors name unsupported syntax: lookaround, backreferences, the multiline option; also syntax of other dialects (`\\A`,
`(?P<…>)`, `a++`, `[[:alpha:]]`), some of which has another meaning in ECMAScript. Extensions: options at the very
beginning, `(?i)`, and where they are unambiguous literal `{`, `}` and `]` and a backslash before any punctuation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NoReturn

from domain.query.base.regex import characters
from domain.query.base.regex.characters import Ranges
from domain.query.base.regex.tree import Characters, Edge, Node, Place, choice, repeat, sequence
from foundation.messages import TranslatableMessage as Message

#: PostgreSQL's maximum.
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
#: Beginning of an unsupported group → its name.
_GROUPS = {
    "(?=": Message("a look ahead"),
    "(?!": Message("a look ahead"),
    "(?<=": Message("a look behind"),
    "(?<!": Message("a look behind"),
    "(?>": Message("an atomic group"),
    "(?#": Message("a comment"),
    "(?P": Message("a group with a name as in Python, instead of {0}", "(?<name>…)"),
}


class PatternError(Exception):
    """A refused pattern. reason is translatable."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason)
        self.reason = reason


@lru_cache(maxsize=256)
def parse(pattern: str) -> Node:
    """The tree of a pattern. Raises PatternError for invalid or unsupported patterns."""
    return _Reader(pattern).whole()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.ignore_case = False
        self.dot_all = False

    # --- reading ------------------------------------------------------------------------------------------------------

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def accept(self, token: str) -> bool:
        result = self.text.startswith(token, self.at)
        self.at += len(token) if result else 0
        return result

    def accept_match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        match = expression.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match

    def unreadable(self, why: Message, at: int) -> NoReturn:
        raise PatternError(Message("the pattern cannot be read from its position {0} on: {1}", at, why))

    def unsupported(self, what: Message, at: int) -> NoReturn:
        raise PatternError(Message("the pattern has what is not supported at its position {0}: {1}", at, what))

    # --- the grammar ----------------------------------------------------------------------------------------------

    def whole(self) -> Node:
        begin = self.at
        options = _OPTIONS.match(self.text)
        if options is not None and options[3] == ")" and options[1] and options[2] is None:
            self.at = options.end()
            self.set_options(options, begin)
        node = self.disjunction()
        if self.at < len(self.text):
            self.unreadable(Message("a parenthesis is closed that was not opened"), self.at)
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
        result = self.accept_match(_REPETITION)
        if result is None:
            if _NO_LOWER_BOUND.match(self.text, self.at):
                self.unsupported(Message("a repetition without a lower bound"), self.at)
            return node
        least, most = _bounds(result)
        if max(least, most or 0) > MAX_COUNT:
            self.unsupported(Message("more than {0} repetitions", MAX_COUNT), begin)
        if most is not None and least > most:
            self.unreadable(Message("the bounds are out of order"), begin)
        if not self.accept("?") and self.peek() == "+":
            self.unsupported(Message("a possessive repetition"), begin)
        if _REPETITION.match(self.text, self.at) is not None:
            self.nothing_to_repeat()
        return repeat(node, least, most)

    def nothing_to_repeat(self) -> NoReturn:
        self.unreadable(Message("there is nothing to repeat"), self.at)

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
            self.unsupported(Message("groups nested deeper than {0} levels", MAX_DEPTH), begin)
        node = self.disjunction()
        if not self.accept(")"):
            self.unreadable(Message("a group is not closed"), begin)
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
            self.unsupported(Message("an option that is not at the beginning, instead of {0}", "(?i:…)"), begin)
        elif not self.accept_match(_NAME):
            self.unsupported(Message("the group {0}", self.text[begin : begin + 3]), begin)

    def set_options(self, options: re.Match[str], begin: int) -> None:
        on, off = options[1], options[2] or ""
        for option in on + off:
            if option not in "is":
                self.unsupported(Message("the option {0}", option), begin)
        self.ignore_case = "i" not in off and (self.ignore_case or "i" in on)
        self.dot_all = "s" not in off and (self.dot_all or "s" in on)

    # --- characters -----------------------------------------------------------------------------------------------

    def literal(self, character: str, begin: int) -> Ranges:
        if characters.is_surrogate(ord(character)):
            self.unsupported(Message("half of a character"), begin)
        return characters.of(character)

    def cased(self, ranges: Ranges) -> Ranges:
        return characters.in_any_case(ranges) if self.ignore_case else ranges

    def set(self) -> Ranges:
        """`[…]`; closed at the first `]`, so `[]` matches no character and `[^]` any."""
        begin = self.at
        self.at += 1
        is_negated = self.accept("^")
        result: list[tuple[int, int]] = []
        while not self.accept("]"):
            if not self.peek():
                self.unreadable(Message("a set of characters is not closed"), begin)
            posix = _POSIX_CLASS.match(self.text, self.at)
            if posix is not None:
                self.unsupported(Message("the class {0}", posix[0]), self.at)
            result += self.range()
        ranges = self.cased(characters.normalized(result))
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
            self.unsupported(Message("a range from or to a class"), begin)
        if first[0][0] > last[0][0]:
            self.unreadable(Message("the range is out of order"), begin)
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
        """The text after a backslash: its characters, and whether they are a class."""
        character = self.peek()
        if not character:
            self.unreadable(Message("the escape is not complete"), begin)
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
        result = self.accept_match(_PROPERTY)
        if result is not None:
            ranges = characters.category(result[1])
            if ranges is None:
                self.unsupported(Message("the property {0}", result[1]), begin)
        elif ranges is not None:
            self.at += 1
        else:
            return None
        ranges = self.cased(ranges)
        return characters.complement(ranges) if letter.isupper() else ranges

    def character_escape(self, begin: int) -> Ranges:
        result = self.accept_match(_HEXADECIMAL)
        if result is not None:
            return self.code(int(result[1] or result[2] or result[3], 16), begin)
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
            self.unsupported(Message("a reference to a group"), begin)
        if character.isalnum():
            self.unsupported(Message("the escape {0}", f"\\{character}"), begin)
        return self.literal(character, begin)

    def code(self, code: int, begin: int) -> Ranges:
        if code > characters.LAST:
            self.unreadable(Message("there is no such character"), begin)
        if characters.is_surrogate(code):
            low = self.accept_match(_LOW_SURROGATE) if code < 0xDC00 else None
            if low is None:
                self.unsupported(Message("half of a character"), begin)
            code = 0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
        return ((code, code),)


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    """Minimum and maximum of a repetition."""
    if found[1] is None:
        return _BOUNDS[found[0]]
    least = int(found[1])
    if found[2] is None:
        return least, least
    return least, int(found[3]) if found[3] is not None else None
