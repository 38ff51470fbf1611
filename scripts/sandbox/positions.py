"""Computes positions in the author's source from the engine's errors.

The engine names every source `<input>` and reports lines, no columns. Functions of preludes have no lines in a stack
(engine_interface.py), but code that a script passes to `eval` has. The script is preceded by more empty lines than such
code usually has, so that a line number identifies its source. A function on a single line has no line in a stack; it is
found by its name.

A thrown value that is no Error has no stack; throw_statements.py identifies the statement.

Columns. Of a syntax error: that of the token at which the parser stops, found by parsing prefixes of the source. Of an
exception: that of the first match of the message on the line (the property read of null, the undefined name, a member
that the message quotes, the `throw`), else of the statement, if the line has only one. So it is exact for a line with
one match; a line of several statements without a match has no column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

# The parser skips them in microseconds.
PADDING_LINES: Final = 5_000

# Syntax errors of longer sources get no column, since each step of the search parses a prefix again.
COLUMN_SEARCH_MAX_CHARS: Final = 100_000

# Longer messages come from scripts, not from the engine, and the search takes quadratic time.
MESSAGE_MAX_CHARS: Final = 2_000

_FRAME: Final = re.compile(
    r"^ {4}at (?:(?P<name>[^\n]*?) \()?(?P<file><input>|native)(?::(?P<line>\d{1,9}))?\)?$", re.MULTILINE
)
_MESSAGE_TOKEN: Final = re.compile(r"(?:unexpected token in expression|unexpected token|invalid keyword): '(.+)'$")
_MESSAGE_PROPERTY: Final = re.compile(r"cannot (?:read|set) property '(.+)' of ")
_MESSAGE_VARIABLE: Final = re.compile(
    r"^'?([\w$]+)'? is (?:not defined|not initialized|read-only)|^assignment to '(.+)'"
)
_MESSAGE_QUOTED: Final = re.compile(r"[\"'„“«]([\w$]+)[\"'“”»]")
#: Maximum quoted names of a message that are searched, because scripts can write any message.
MAX_QUOTED: Final = 3
_INNERMOST: Final = re.compile(r"\([^()]*+\)")
#: A statement that ends before the end of its line.
_ENDED_STATEMENT: Final = re.compile(r";\s*+[^\s;/]")
_WORD: Final = re.compile(r"[\w$]")
_CALL: Final = re.compile(r"(?<![\w$.\]])[\w$.\]]++\s*+\(")


class Position(NamedTuple):
    """Counted from 1; None where unknown."""

    line: int | None
    column: int | None


NOWHERE: Final = Position(None, None)


def author_line(engine_line: int) -> int | None:
    """The line of the author's source, or None for a line of a prelude."""
    return engine_line - PADDING_LINES if engine_line > PADDING_LINES else None


def of_exception(stack: str, name: str, message: str, source: str) -> Position:
    """Position of the innermost frame in the author's source."""
    lines = source.split("\n")
    for match in _FRAME.finditer(stack):
        if match["file"] != "<input>":
            continue
        line = _line_of_frame(match, source)
        if line is not None:
            line = min(line, len(lines))  # the engine may report the line of the token after the last statement
            return Position(line, column_of_exception(lines[line - 1], name, message))
    return NOWHERE


def of_offset(offset: int, source: str) -> Position:
    """Position of a character."""
    line_start = source.rfind("\n", 0, offset) + 1
    return Position(source.count("\n", 0, offset) + 1, offset - line_start + 1)


def column_of_exception(text: str, name: str, message: str) -> int | None:
    """Column of the first match of the message on the line, or of its only statement."""
    if len(message) > MESSAGE_MAX_CHARS:
        message = ""
    for pattern in _patterns(name, message):
        match = pattern.search(text)
        if match is not None:
            return match.start() + 1
    # The parts of a `for` are no statements.
    return None if _ENDED_STATEMENT.search(_INNERMOST.sub("()", text)) else len(text) - len(text.lstrip()) + 1


def _patterns(name: str, message: str) -> list[re.Pattern[str]]:
    """Regular expressions for the position, best first."""
    if match := _MESSAGE_PROPERTY.search(message):
        return [re.compile(rf"(?<=[.\['\"`]){re.escape(match[1])}(?![\w$])")]
    if match := _MESSAGE_VARIABLE.search(message):
        return [re.compile(rf"(?<![\w$.]){re.escape(match[1] or match[2])}(?![\w$])")]
    if message == "not a function":
        return [_CALL]
    result = rf"\bnew\s+{re.escape(name)}\b" if name else r"\bPromise\s*\.\s*reject\b"
    members = [re.escape(member) for member in _MESSAGE_QUOTED.findall(message)[:MAX_QUOTED]]
    quoted = [re.compile(rf"{before}{member}(?![\w$])") for before in (r"(?<=\.)", r"(?<![\w$])") for member in members]
    return [re.compile(r"\bthrow\b"), re.compile(result), *quoted]


def _line_of_frame(match: re.Match[str], source: str) -> int | None:
    """Line of a frame; the engine gives none if the function throws on its first line."""
    if match["line"] is None and match["file"] == "<input>":
        return _line_of_function(match["name"] or "", source)
    return author_line(int(match["line"] or 0))


def _line_of_function(name: str, source: str) -> int | None:
    """Line of the function of that name, if there is exactly one."""
    if not name or name.startswith("<") or not _WORD.match(name):
        return None
    escaped = re.escape(name)
    defined = re.compile(
        rf"\bfunction\s*+(?:\*\s*+)?+{escaped}\s*\(|(?<![\w$]){escaped}\s*[=:]\s*(?:async\b\s*)?(?:function\b|\(|[\w$]+\s*=>)"
        rf"|(?<![\w$.]){escaped}\s*\([^()\n]*\)\s*\{{"
    )
    result = list(defined.finditer(source))
    return source.count("\n", 0, result[0].start()) + 1 if len(result) == 1 else None


def author_stack(stack: str, source: str, source_name: str) -> str:
    """The stack in the author's lines, without the frames of preludes and of the runner."""
    frames: list[str] = []
    for match in _FRAME.finditer(stack):
        # Searching a function's line takes time: only for the innermost frame.
        line = author_line(int(match["line"] or 0)) if frames else _line_of_frame(match, source)
        if line is not None:
            frames.append(f"    at {match['name'] or '<source>'} ({source_name}:{line})")
    return "\n".join(frames)


def line_of_parser(stack: str) -> int | None:
    """The line if the stack of a SyntaxError is from parsing the script, not from running it.

    The parser's position comes first, without a function's name, and no frame of the script's code follows.
    """
    match = _FRAME.match(stack)
    if match is None or match["name"] is not None or "<eval> (<input>" in stack:
        return None
    return author_line(int(match["line"] or 0))


def of_syntax_error(
    engine_line: int, message: str, source: str, parse: Callable[[str], tuple[str, int | None] | None]
) -> Position:
    """Position at which the parser stops. parse: a start of the source → message and line of its error, None if it
    parses.
    """
    lines = source.split("\n")
    if engine_line > len(lines):  # unexpected end of the source
        return Position(len(lines), len(lines[-1]) + 1)
    if len(source) > COLUMN_SEARCH_MAX_CHARS:
        return Position(engine_line, None)
    line_start = sum(len(line) + 1 for line in lines[: engine_line - 1])
    low, high = line_start, line_start + len(lines[engine_line - 1])
    expected = (message, engine_line)

    def has_same_error(end: int) -> bool:
        # An unexpected end is reported at the end of the source: the line breaks distinguish it from other errors.
        return parse(source[:end] + "\n\n") == expected

    if not has_same_error(high):
        return Position(engine_line, high - line_start + 1)
    # The shortest prefix of the source with the same error ends in the token that caused it.
    while low < high:
        middle = (low + high) // 2
        if has_same_error(middle):
            high = middle
        else:
            low = middle + 1
    return Position(engine_line, _token_start(source, line_start, low, message) - line_start + 1)


def clarified(message: str, place: Position, source: str) -> str:
    """The parser's message; at the end of the source what is missing, instead of the empty or added token there."""
    lines = source.split("\n")
    at_end = place == Position(len(lines), len(lines[-1]) + 1)
    if message == "unexpected token in expression: ''" or (at_end and message.startswith("unexpected token in expr")):
        return "the source ends where an expression is expected"
    return message


def _token_start(source: str, line_start: int, end: int, message: str) -> int:
    """The start of the token that ends at, or has its first character before, an offset."""
    if len(message) <= MESSAGE_MAX_CHARS and (match := _MESSAGE_TOKEN.search(message)):
        start = end - len(match[1])
        if start >= line_start and source[start:end] == match[1]:
            return start
    last = source[end - 1 : end]
    if last and last in "'\"`":
        opening = source.rfind(last, line_start, end - 1)
        return opening if opening >= 0 else end - 1
    start = max(line_start, end - 1)
    if "redefinition" in message:  # reported when the token after the name is read
        start = max(line_start, len(source[:start].rstrip()) - 1)
    while start > line_start and _WORD.match(source[start]) and _WORD.match(source[start - 1]):
        start -= 1
    return start
