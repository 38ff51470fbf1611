"""Numbers `throw` statements, since a thrown value that is no Error has no stack.

`throw <expression>` becomes `throw __throwSite(3).value = <expression>`, which throws the same value; the setter, in
preludes/sandbox.js, stores the number and the value. The scanner knows strings, templates, comments and regular
expressions. At a slash that could begin a regular expression or a division it stops and leaves the rest unmarked, whose
positions are then unknown. It reads each character once.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

#: The function of preludes/sandbox.js that a marked statement calls.
MARKER: Final = "__throwSite"

#: Longer sources are not marked. A scan takes up to 1 µs a character, measured on two shared cores.
SOURCE_MAX_CHARS: Final = 100_000

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*')
    |(?P<word>\#?[\w$]+)
    |(?P<plain>[;,:?=!|&%*~^>])
    |(?P<mark>.)""",
    re.DOTALL | re.VERBOSE,
)
_TEMPLATE: Final = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(`|\$\{)", re.DOTALL)
_EXPRESSION: Final = re.compile(r"/(?:[^/\\\[\n\r]|\\[^\n\r]|\[(?:[^\]\\\n\r]|\\[^\n\r])*\])+/[\w$]*")
_SAME_LINE: Final = re.compile(r"[^\S\n\r\u2028\u2029]*")
_SPACE: Final = re.compile(r"\s*")
_BEFORE_EXPRESSION: Final = frozenset(
    {"return", "typeof", "instanceof", "in", "new", "delete", "void", "throw", "case", "do", "else"}
)
_WITH_CONDITION: Final = frozenset({"if", "while", "for", "with"})
#: Names that are keywords only in some contexts.
_EITHER: Final = frozenset({"of", "yield", "await"})


@lru_cache(maxsize=32)
def throw_statements(source: str) -> list[int]:
    """Offsets of the `throw` statements, in order, as far as the source could be scanned."""
    if "throw" not in source or len(source) > SOURCE_MAX_CHARS:
        return []
    scanner = _Scanner(source)
    scanner.scan()
    return sorted(scanner.found)


def marked(source: str, statements: list[int]) -> str:
    """The source with numbered statements; every line keeps its number."""
    parts = []
    end = 0
    for number, offset in enumerate(statements):
        keyword_end = offset + len("throw")
        parts += [source[end:keyword_end], f" {MARKER}({number}).value ="]
        end = keyword_end
    return "".join(parts) + source[end:]


class _Scanner:
    def __init__(self, source: str) -> None:
        self._source = source
        self.found: list[int] = []
        self._last = ""  # the last token, "" at the start; a literal is "literal"
        self._before_last = ""
        # "{" a brace, "${" a template's, "(" a parenthesis, "if" one of a condition, an offset: one behind `throw`
        self._open: list[str | int] = []
        self._pending = 0  # the offset of a `throw` before a parenthesis
        self._closed: str | int = ""  # what the last ")" closed

    def scan(self) -> None:
        position: int | None = 0
        while position is not None and (match := _TOKEN.match(self._source, position)) is not None:
            position = match.end()
            match match.lastgroup:
                case "word":
                    word = match["word"]
                    if word == "throw" or self._last == ".":
                        self._word(word, match.start(), position)
                    else:
                        self._before_last, self._last = self._last, word
                case "plain":
                    self._before_last, self._last = "", match["plain"]
                case "mark":
                    position = self._mark(match["mark"], position)
                case "string":
                    self._follow("literal")

    def _follow(self, token: str) -> None:
        self._before_last, self._last = self._last, token

    def _word(self, word: str, start: int, end: int) -> None:
        is_member = self._last == "."
        if word == "throw" and not is_member:
            match = _SAME_LINE.match(self._source, end)
            assert match is not None
            following = self._source[match.end() : match.end() + 2]
            if following[:1] == "(":
                self._follow("throw")
                self._pending = start
                return
            if following and following[0] not in ":=;,})]>\n\r\u2028\u2029" and following not in ("//", "/*"):
                self.found.append(start)
        self._follow("literal" if is_member else word)

    def _mark(self, mark: str, end: int) -> int | None:
        """The offset to continue at, None to stop."""
        source = self._source
        match mark:
            case "`":
                return self._template(end)
            case "/":
                return self._slash(end)
            case "(":
                kind: str | int = "("
                if self._last == "throw":
                    kind = self._pending
                elif self._last in _WITH_CONDITION or self._last == "await":
                    kind = self._last
                self._open.append(kind)
            case "{" | "[":
                self._open.append(mark)
            case ")" | "]" | "}":
                opened = self._open.pop() if self._open else None
                if opened is None or (mark == "}") != (opened in ("{", "${")) or (mark == "]") != (opened == "["):
                    return None
                self._closed = opened
                if opened == "${":
                    return self._template(end)
                if isinstance(opened, int):
                    following = _SPACE.match(source, end)
                    assert following is not None
                    # Before a block it is a method with that name.
                    if source[following.end() : following.end() + 1] not in ("{", "/"):
                        self.found.append(opened)
            case "\\" | "#" | '"' | "'":
                return None
            case "<" | "-" if source.startswith(("<!--", "-->"), end - 1):
                return None
        self._follow(mark)
        return end

    def _template(self, position: int) -> int | None:
        match = _TEMPLATE.match(self._source, position)
        if match is None:
            return None
        if match[1] == "${":
            self._open.append("${")
            self._follow("{")
        else:
            self._follow("literal")
        return match.end()

    def _slash(self, end: int) -> int | None:
        if self._source.startswith("/*", end - 1):
            return None  # an unterminated comment
        match self._means():
            case "division":
                self._follow("/")
                return end
            case "expression":
                match = _EXPRESSION.match(self._source, end - 1)
                if match is not None:
                    self._follow("literal")
                    return match.end()
        return None

    def _means(self) -> Literal["division", "expression", "either"]:
        last = self._last
        if last == ")":
            if self._closed == "await":
                return "either"
            return "expression" if self._closed in _WITH_CONDITION else "division"
        if last in ("}", ".") or last in _EITHER or (last in ("+", "-") and self._before_last == last):
            return "either"
        if last in ("literal", "]"):
            return "division"
        if re.match(r"[\w$#]", last):
            return "expression" if last in _BEFORE_EXPRESSION else "division"
        return "expression"
