"""Parses resource paths (section 1 of the ABNF; Part 2, section 4).

The published grammar distinguishes entity sets, functions and properties, for which a parser needs the model. Here a
segment is a name with or without parentheses, a keyword or a literal; binding decides its meaning.
"""

import re
from typing import Final, NoReturn, cast
from typing import Literal as OneOf

from domain.syntax import ast
from domain.syntax.errors import END_OF_PATH, ENTITY_SET_NAME, LOGICAL_OPERATOR, ODataSyntaxError
from domain.syntax.options import OptionsParser
from domain.syntax.percent import percent_decode
from domain.syntax.tokens import IDENTIFIER, NAME
from foundation.messages import TranslatableMessage as Message

KeywordName = OneOf["$count", "$ref", "$value", "$each", "$query", "$all", "$batch", "$entity", "$metadata"]

MAX_SEGMENTS: Final = 1000

_FIRST_KEYWORDS: Final = frozenset({"$all", "$batch", "$entity", "$metadata"})
_LATER_KEYWORDS: Final = frozenset({"$count", "$ref", "$value", "$each", "$query"})
_LAST_KEYWORDS: Final = frozenset({"$count", "$ref", "$value", "$query", "$batch", "$metadata"})

# The usual segment, Set(guid), in one match.
_NAME_AND_GUID: Final = re.compile(
    r"([A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+)"
    r"(?:\(([0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})\))?+"
)
_LONGEST_PLAIN_NAME: Final = 128


def parse_resource_path(raw: str) -> ast.ResourcePath:
    """The path below the service root, without leading slash, still percent-encoded (rule resourcePath).

    Segments are split at "/" before they are decoded, so a slash inside a key is written %2F. Empty text is the service
    document. Positions count in the decoded path.
    """
    if not raw:
        return ast.ResourcePath(())
    if raw.count("/") >= MAX_SEGMENTS:
        raise ODataSyntaxError(Message("More than {0} segments in a path.", MAX_SEGMENTS), raw, 0)
    parts = raw.split("/")
    segments: list[ast.Segment] = []
    if "%" not in raw and "$" not in raw and raw.isascii():
        at = 0
        for part in parts:
            match = _NAME_AND_GUID.fullmatch(part)
            if match is None or len(match[1]) > _LONGEST_PLAIN_NAME or (at == 0 and "." in match[1]):
                break
            segments.append(_plain_segment(match, at))
            at += len(part) + 1
        else:
            return ast.ResourcePath(tuple(segments))
    return _PathReader([percent_decode(part) for part in parts]).path()


def _plain_segment(match: re.Match[str], at: int) -> ast.NameSegment:
    name, guid = match[1], match[2]
    if guid is None:
        return ast.NameSegment(name, position=at)
    key_at = at + len(name)
    literal = ast.Literal(ast.LiteralKind.GUID, guid.lower(), guid, position=key_at + 1)
    return ast.NameSegment(name, (ast.Key(literal, position=key_at),), position=at)


class _PathParser(OptionsParser):
    """Reads the text of segments. Values in parentheses are literals and aliases, never expressions."""

    __slots__ = ("_in_segment_parentheses",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._in_segment_parentheses = False

    def segment_suffix(self) -> ast.Key | ast.Arguments:
        self._in_segment_parentheses = True
        suffix = self.suffix()
        self._in_segment_parentheses = False
        return suffix

    def expression(self, *, colon_follows: bool = False) -> ast.Expression:
        at = self.position
        node = super().expression(colon_follows=colon_follows)
        if self._in_segment_parentheses and not (
            isinstance(node, ast.Literal | ast.ParameterAlias) and node.position == at
        ):
            self.fail(Message("a literal"), Message("a parameter alias"), at=at)
        return node


class _PathReader:
    """Reads the split segments.

    parts are the decoded texts between slashes, ends their ends in the decoded path. A slash inside the parentheses of
    ``$filter(...)`` belongs to the expression there, so that segment may take several parts.
    """

    def __init__(self, parts: list[str]) -> None:
        self.text = "/".join(parts)
        self.parser = _PathParser(self.text)
        self.ends: list[int] = []
        end = -1
        for part in parts:
            end += len(part) + 1
            self.ends.append(end)
        self.segments: list[ast.Segment] = []

    def path(self) -> ast.ResourcePath:
        index = 0
        while index < len(self.ends):
            start = self.ends[index - 1] + 1 if index else 0
            self.parser.position = start
            segment = self._segment(start, self.ends[index])
            self._check_may_follow(segment)
            self.segments.append(segment)
            if isinstance(segment, ast.FilterSegment):
                while index < len(self.ends) - 1 and self.ends[index] < self.parser.position:
                    index += 1
            if self.parser.position != self.ends[index]:
                self._fail_at_end(self.ends[index])
            index += 1
        self.parser.position = len(self.text)
        self.parser.finish()
        return ast.ResourcePath(tuple(self.segments))

    def _fail_at_end(self, end: int) -> NoReturn:
        if self.parser.position > end:
            raise ODataSyntaxError(Message("A slash inside a segment is written %2F."), self.text, end, ("%2F",))
        self.parser.fail("'/'", END_OF_PATH)

    def _segment(self, start: int, end: int) -> ast.Segment:
        text = self.text[start:end]
        if not text:
            self.parser.refuse(Message("A segment of the path is empty."), start, ("a name",))
        if text.startswith("$"):
            return self._dollar_segment(text, start)
        match = NAME.match(self.text, start, end)
        if match is not None and (match.end() == end or self.text[match.end()] == "("):
            return self._name_segment(match, start)
        return self._literal_segment(text, start, end)

    def _check_may_follow(self, segment: ast.Segment) -> None:
        """Refuse orders of segments that are invalid in every model."""
        at = segment.position
        last = self.segments[-1] if self.segments else None
        if isinstance(last, ast.KeywordSegment):
            if last.name in _LAST_KEYWORDS:
                self.parser.refuse(Message("Nothing can follow {0}.", last.name), at, ("the end of the path",))
            if last.name in _FIRST_KEYWORDS and not (isinstance(segment, ast.NameSegment) and not segment.suffixes):
                self.parser.fail(Message("the name of a type"), at=at)
            if last.name == "$each" and not isinstance(segment, ast.NameSegment):
                self.parser.fail(Message("the name of an operation"), at=at)
        if len(self.segments) == 2 and _is_keyword(self.segments[0], "$all", "$entity"):
            self.parser.fail(END_OF_PATH, at=at)
        if isinstance(last, ast.CrossjoinSegment) and not _is_keyword(segment, "$query"):
            self.parser.fail("$query", END_OF_PATH, at=at)
        if last is None and isinstance(segment, ast.NameSegment) and "." in segment.name:
            self.parser.fail(Message("the name of an entity set, singleton or operation without namespace"), at=at)
        if isinstance(segment, ast.LiteralSegment) and _is_keyed(last):
            self.parser.fail(Message("a name"), at=at)

    def _name_segment(self, match: re.Match[str], start: int) -> ast.NameSegment:
        parser = self.parser
        name = parser.checked_name(match[0], start)
        parser.position = match.end()
        suffixes: list[ast.Key | ast.Arguments] = []
        while parser.peek() == "(" and len(suffixes) < 2 and not (suffixes and isinstance(suffixes[0], ast.Key)):
            suffixes.append(parser.segment_suffix())
        return ast.NameSegment(name, tuple(suffixes), position=start)

    def _literal_segment(self, text: str, start: int, end: int) -> ast.LiteralSegment:
        """A key as segment, or an ordinal. Raises for parentheses, as the segment is probably a misspelt name."""
        if not self.segments or "(" in text or ")" in text:
            self.parser.fail(Message("a name"), at=start)
        self.parser.position = end
        return ast.LiteralSegment(text, position=start)

    # --- segments with a dollar sign

    def _dollar_segment(self, text: str, start: int) -> ast.Segment:
        if text.startswith("$filter("):
            return self._filter_segment(start)
        if text.startswith("$crossjoin("):
            return self._crossjoin_segment(start)
        known = _LATER_KEYWORDS if self.segments else _FIRST_KEYWORDS
        if text not in known:
            self._fail_keyword(start)
        self.parser.position = start + len(text)
        return ast.KeywordSegment(cast(KeywordName, text), position=start)

    def _fail_keyword(self, start: int) -> NoReturn:
        if self.segments:
            self.parser.fail(*sorted(_LATER_KEYWORDS), "$filter(", Message("a name"), at=start)
        self.parser.fail(ENTITY_SET_NAME, *sorted(_FIRST_KEYWORDS), "$crossjoin(", at=start)

    def _filter_segment(self, start: int) -> ast.FilterSegment:
        if not self.segments:
            self.parser.fail(ENTITY_SET_NAME, at=start)
        parser = self.parser
        parser.position = start + len("$filter(")
        parser.skip_space()
        predicate = parser.expression()
        parser.close(LOGICAL_OPERATOR)
        key = parser.segment_suffix() if parser.peek() == "(" else None
        return ast.FilterSegment(predicate, key, position=start)

    def _crossjoin_segment(self, start: int) -> ast.CrossjoinSegment:
        if self.segments:
            self.parser.refuse(Message("$crossjoin stands at the beginning of a path."), start)
        parser = self.parser
        parser.position = start + len("$crossjoin(")
        parser.skip_space()
        names = parser.comma_list(lambda: parser.identifier(IDENTIFIER, ENTITY_SET_NAME))
        parser.close("','")
        return ast.CrossjoinSegment(names, position=start)


def _is_keyword(segment: ast.Segment, *names: str) -> bool:
    return isinstance(segment, ast.KeywordSegment) and segment.name in names


def _is_keyed(segment: ast.Segment | None) -> bool:
    """Whether segment ends with a key, so that it identifies one entity."""
    if isinstance(segment, ast.FilterSegment):
        return isinstance(segment.key, ast.Key)
    return isinstance(segment, ast.NameSegment) and bool(segment.suffixes) and isinstance(segment.suffixes[-1], ast.Key)
