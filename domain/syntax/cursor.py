"""Cursor: base class of the parsers, with position, limits, errors and tokens."""

import re
from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar

from domain.syntax.errors import END_OF_TEXT, NotSupportedConstruct, ODataSyntaxError, found_at
from domain.syntax.tokens import SPACE, is_identifier, is_name
from foundation.messages import TranslatableMessage as Message
from foundation.messages import one_of

Item = TypeVar("Item")

MAX_NESTING: Final = 100
"""Levels that a tree may have. Above any sensible URL, and far enough below Python's recursion limit (1000 frames)
that binding, planning and hashing may spend several frames a level."""

MAX_PARTS: Final = 50_000
"""Operands, path steps, list items and so on in one text: a list of 50,000 guids is 2 MB and read in half a second.
What has more is refused rather than served slowly."""


class Cursor:
    """Reads text from left to right without backtracking, so that time is linear in its length.

    height is the height of the last parsed node, which a chain such as ``1 add 1 add 1`` increases without parentheses.
    """

    __slots__ = ("depth", "height", "not_supported", "parts", "position", "text")

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position
        self.depth = 0
        self.height = 0
        self.parts = 0
        self.not_supported: tuple[Message, int] | None = None

    # --- failing

    def fail(self, *expected: str, at: int | None = None) -> NoReturn:
        """Raise the error that one of these was expected at the position: phrases, or tokens of the grammar."""
        position = self.position if at is None else at
        message = Message("Expected {0}, found {1}.", one_of(expected), found_at(self.text, position))
        raise ODataSyntaxError(message, self.text, position, expected)

    def refuse(self, message: Message, at: int, expected: Sequence[str] = ()) -> NoReturn:
        """Raise with the given message."""
        raise ODataSyntaxError(message, self.text, at, expected)

    def note_not_supported(self, construct: Message, at: int) -> None:
        """Note an unsupported construct; it is reported only if the whole text is valid."""
        if self.not_supported is None:
            self.not_supported = (construct, at)

    def finish(self, *expected: str) -> None:
        """Check that only white space remains."""
        self.skip_space()
        if self.position != len(self.text):
            self.fail(*expected, END_OF_TEXT)
        if self.not_supported is not None:
            construct, at = self.not_supported
            raise NotSupportedConstruct(construct, self.text, at)

    # --- nesting

    def enter(self, levels: int = 1) -> None:
        """Enter a nested construct; levels is the number of nested nodes for one level of the text."""
        self.depth += levels
        if self.depth > MAX_NESTING:
            self.fail_nesting()

    def leave(self, levels: int = 1) -> None:
        self.depth -= levels

    def raise_height(self, height: int) -> None:
        """Set the height of the new node."""
        self.height = height
        if height > MAX_NESTING:
            self.fail_nesting()

    def count_part(self) -> None:
        """Count one more part of the text, up to MAX_PARTS."""
        self.parts += 1
        if self.parts > MAX_PARTS:
            self.fail_size()

    def fail_size(self) -> NoReturn:
        self.refuse(Message("More than {0} values, names and operators in one text.", MAX_PARTS), self.position)

    def fail_nesting(self) -> NoReturn:
        self.refuse(Message("Nested deeper than {0} levels.", MAX_NESTING), self.position)

    # --- reading

    def skip_space(self) -> None:
        if self.text.startswith((" ", "\t"), self.position):
            match = SPACE.match(self.text, self.position)
            assert match is not None
            self.position = match.end()

    def peek(self) -> str:
        """The next character, empty at the end."""
        return self.text[self.position : self.position + 1]

    def take(self, token: str) -> bool:
        """Skip token if it comes next."""
        if self.text.startswith(token, self.position):
            self.position += len(token)
            return True
        return False

    def take_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def expect(self, token: str, *others: str) -> None:
        """Skip token, which must come next; others are the alternatives."""
        if not self.text.startswith(token, self.position):
            self.fail(*others, f"'{token}'")
        self.position += len(token)

    def close(self, *others: str) -> None:
        """Skip white space and a closing parenthesis."""
        self.skip_space()
        self.expect(")", *others)

    def open(self) -> None:
        """Skip an opening parenthesis and white space."""
        self.expect("(")
        self.skip_space()

    def comma(self) -> bool:
        """Skip a comma and white space around it, if one comes next."""
        position = self.position
        if not self.text.startswith((",", " ", "\t"), position):
            return False
        self.skip_space()
        if self.text.startswith(",", self.position):
            self.position += 1
            self.skip_space()
            return True
        self.position = position
        return False

    def values(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        """Comma-separated items, which `read` counts itself; height becomes the maximum of their heights."""
        items = [read()]
        height = self.height
        while self.comma():
            items.append(read())
            height = max(height, self.height)
        self.height = height
        return tuple(items)

    def comma_list(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        """Comma-separated items."""
        items = [read()]
        while self.comma():
            self.count_part()
            items.append(read())
        return tuple(items)

    def expect_comma(self) -> None:
        if not self.comma():
            self.skip_space()
            self.fail("','")

    def identifier(self, pattern: re.Pattern[str], what: Message) -> str:
        """An odataIdentifier."""
        at = self.position
        match = self.take_match(pattern)
        if match is None:
            self.fail(what)
        return self.checked_identifier(match[0], at)

    def checked_identifier(self, text: str, at: int) -> str:
        if not is_identifier(text):
            self.fail_name(at)
        return text

    def checked_name(self, text: str, at: int) -> str:
        if not is_name(text):
            self.fail_name(at)
        return text

    def fail_name(self, at: int) -> NoReturn:
        self.refuse(Message("A name consists of letters, digits and underscores and has at most 128 characters."), at)
