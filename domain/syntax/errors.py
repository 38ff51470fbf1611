"""Syntax errors of OData URLs.

::

    ODataUrlError                 text, position, option
    ├── ODataSyntaxError          the text violates the grammar: expected, found      → 400
    └── NotSupportedConstruct     the text is valid, but means nothing in any model: construct   → 501

Only the parser raises them; binding has its own errors. Their messages are translatable.
"""

from collections.abc import Sequence
from typing import Final

from foundation.messages import TranslatableMessage as Message

EXCERPT_LENGTH: Final = 40
"""Characters of the text that a message quotes before and behind the position; the text may have a megabyte."""


class ODataUrlError(Exception):
    """The text at position (offset from 0 in text, which is percent-decoded) is invalid or unsupported.

    option names the query option of the text, e.g. ``$filter``; it is empty if the text was parsed separately.
    """

    def __init__(self, message: Message, text: str, position: int, *, option: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.position = position
        self.option = option

    @property
    def located(self) -> Message:
        """The message with its position in the text, without the option."""
        return Message("{0} (position {1} in {2})", self.message, self.position, excerpt(self.text, self.position))

    def __str__(self) -> str:
        return f"{self.option}: {self.located}" if self.option else str(self.located)


class ODataSyntaxError(ODataUrlError):
    """The text does not follow the grammar.

    message is a sentence for the client's developer; expected lists the alternatives, as prose.
    """

    def __init__(
        self, message: Message, text: str, position: int, expected: Sequence[str] = (), *, option: str = ""
    ) -> None:
        super().__init__(message, text, position, option=option)
        self.expected = tuple(expected)


class NotSupportedConstruct(ODataUrlError):
    """The text follows the grammar, but uses an unsupported construct, such as geography."""

    def __init__(self, construct: Message, text: str, position: int, *, option: str = "") -> None:
        super().__init__(Message("{0} are not supported.", construct), text, position, option=option)
        self.construct = construct


def excerpt(text: str, position: int) -> str:
    """The text around position in quotes, with dots where it is cut."""
    start = max(0, position - EXCERPT_LENGTH)
    end = position + EXCERPT_LENGTH
    return f"'{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}'"


def found_at(text: str, position: int) -> str:
    """The token at position, for the end of a sentence: the end of the text, a word or a character."""
    if position >= len(text):
        return END_OF_TEXT
    end = position + 1
    if text[position].isalnum() or text[position] in "_$@":
        while end < len(text) and end - position < EXCERPT_LENGTH and (text[end].isalnum() or text[end] in "_."):
            end += 1
    return f"'{text[position:end]}'" if text[position] not in " \t" else Message("white space")


# Expected tokens of several modules; module constants, so that parsing valid text does not create them.
END_OF_TEXT: Final = Message("the end of the text")
END_OF_PATH: Final = Message("the end of the path")
LOGICAL_OPERATOR: Final = Message("an operator such as eq or and")
ENTITY_SET_NAME: Final = Message("the name of an entity set")
