"""The filter language of SCIM (RFC 7644, 3.4.2.2) and paths of PATCH (3.5.2): text → tree.

Bounded: a text of at most MAX_LENGTH characters, MAX_COMPARISONS comparisons and MAX_DEPTH nested brackets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import orjson

from domain.scim.errors import ScimError
from foundation.messages import TranslatableMessage as Message

MAX_LENGTH: Final = 2000
MAX_COMPARISONS: Final = 50
MAX_DEPTH: Final = 16
OPERATORS: Final = frozenset({"eq", "ne", "co", "sw", "ew", "pr", "gt", "ge", "lt", "le"})

Literal = str | bool | int | float | None

_TOKEN = re.compile(
    r"""\ *(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")
    |(?P<number>-?\d+(?:\.\d+)?)(?![\w.])
    |(?P<word>[A-Za-z$][\w$:.-]*)
    |(?P<sign>[()\[\]]|\.[A-Za-z$][\w$-]*))""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`path op value`; value is None for `pr`."""

    path: str
    operator: str
    value: Literal


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Tree


@dataclass(frozen=True, slots=True)
class ValuePath:
    """`path[filter]`: at least one value of a multi-valued attribute matches the filter."""

    path: str
    filter: Tree


Tree = And | Or | Not | Comparison | ValuePath


@dataclass(frozen=True, slots=True)
class PatchPath:
    """`attribute[filter].part` of a PATCH operation; part is "" if it names none."""

    attribute: str
    filter: Tree | None
    part: str


def parse_filter(text: str) -> Tree:
    """The tree of a filter. Raises ScimError(invalidFilter) with the position."""
    parser = _Parser(text, "invalidFilter")
    tree = parser.alternatives(0)
    parser.expect_end()
    return tree


def parse_path(text: str) -> PatchPath:
    """The path of a PATCH operation. Raises ScimError(invalidPath)."""
    parser = _Parser(text, "invalidPath")
    path = parser.path()
    parser.expect_end()
    return path


def without_schema(path: str) -> str:
    """The path without the schema URN before its last colon (RFC 7644, 3.10)."""
    return path.rpartition(":")[2] if path.lower().startswith("urn:") else path


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, text: str, scim_type: str) -> None:
        self._scim_type = scim_type
        if len(text) > MAX_LENGTH:
            raise ScimError(400, Message("It has more than {0} characters.", MAX_LENGTH), scim_type)
        if "\0" in text:
            raise ScimError(400, Message("It contains the character U+0000."), scim_type)
        self._tokens: list[tuple[str, str, int]] = []  # (kind, text, position)
        at, end = 0, len(text.rstrip(" "))
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                raise self._wrong(at)
            self._tokens.append((match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            at = match.end()
        self._tokens.append(("end", "", end))
        self._at = 0
        self._comparisons = 0

    def alternatives(self, depth: int) -> Tree:
        """A sequence of `or`, which has the lowest precedence."""
        parts = [self._conjunction(depth)]
        while self._takes_word("or"):
            parts.append(self._conjunction(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self, depth: int) -> Tree:
        parts = [self._factor(depth)]
        while self._takes_word("and"):
            parts.append(self._factor(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _factor(self, depth: int) -> Tree:
        if depth > MAX_DEPTH:
            raise ScimError(400, Message("It is nested deeper than {0} levels.", MAX_DEPTH), self._scim_type)
        if self._takes_word("not"):
            self._take("(")
            return Not(self._closed(depth, ")"))
        if self._peek()[1] == "(":
            self._at += 1
            return self._closed(depth, ")")
        path = without_schema(self._word())
        if self._peek()[1] == "[":
            self._at += 1
            return ValuePath(path, self._closed(depth, "]"))
        return self._comparison(path)

    def _closed(self, depth: int, sign: str) -> Tree:
        inner = self.alternatives(depth + 1)
        self._take(sign)
        return inner

    def _comparison(self, path: str) -> Comparison:
        self._comparisons += 1
        if self._comparisons > MAX_COMPARISONS:
            raise ScimError(400, Message("It has more than {0} comparisons.", MAX_COMPARISONS), self._scim_type)
        position = self._peek()[2]
        operator = self._word().lower()
        if operator not in OPERATORS:
            raise self._wrong(position)
        return Comparison(path, operator, None if operator == "pr" else self._literal())

    def path(self) -> PatchPath:
        """attrPath / valuePath [subAttr]."""
        attribute, _, part = without_schema(self._word()).partition(".")
        tree = None
        if self._peek()[1] == "[" and not part:
            self._at += 1
            tree = self._closed(0, "]")
            if self._peek()[1].startswith("."):
                part = self._next()[1][1:]
        return PatchPath(attribute, tree, part)

    def expect_end(self) -> None:
        if self._peek()[0] != "end":
            raise self._wrong(self._peek()[2])

    def _literal(self) -> Literal:
        kind, text, position = self._next()
        words: dict[str, Literal] = {"true": True, "false": False, "null": None}
        if kind in ("string", "number"):
            try:
                value: Literal = orjson.loads(text)
            except orjson.JSONDecodeError as exc:  # such as an unpaired surrogate
                raise self._wrong(position) from exc
            if isinstance(value, str) and "\0" in value:
                raise self._wrong(position)
            return value
        if kind == "word" and text.lower() in words:
            return words[text.lower()]
        raise self._wrong(position)

    def _word(self) -> str:
        kind, text, position = self._next()
        if kind != "word":
            raise self._wrong(position)
        return text

    def _takes_word(self, word: str) -> bool:
        kind, text, _ = self._peek()
        if kind == "word" and text.lower() == word:
            self._at += 1
            return True
        return False

    def _take(self, sign: str) -> None:
        if self._next()[1] != sign:
            raise self._wrong(self._tokens[self._at - 1][2])

    def _peek(self) -> tuple[str, str, int]:
        return self._tokens[self._at]

    def _next(self) -> tuple[str, str, int]:
        token = self._tokens[self._at]
        if token[0] == "end":
            raise self._wrong(token[2])
        self._at += 1
        return token

    def _wrong(self, position: int) -> ScimError:
        return ScimError(400, Message("It cannot be read at position {0}.", position), self._scim_type)
