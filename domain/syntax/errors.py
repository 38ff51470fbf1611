"""What can go wrong with the text of an OData URL.

::

    ODataUrlError                 text, position, option
    ├── ODataSyntaxError          the text is not in the grammar: expected, found     → 400
    └── NotSupportedConstruct     it is, but has no meaning in any model here: construct   → 501

Both are raised by the parser only; what names mean is checked later and fails with errors of its own.

What they say are phrases, English that can be said in other languages.
"""

from collections.abc import Sequence
from typing import Final

from foundation.phrases import Phrase

EXCERPT_LENGTH: Final = 40
"""Characters of the text that a message quotes before and behind the position; the text may have a megabyte."""


class ODataUrlError(Exception):
    """The text at position (offset from 0 in text, which is percent-decoded) cannot be served.

    option names the query option that the text is the value of, e.g. ``$filter``; it is empty when the text was
    parsed by itself.
    """

    def __init__(self, message: Phrase, text: str, position: int, *, option: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.position = position
        self.option = option

    @property
    def located(self) -> Phrase:
        """The message with its place in the text. Whoever says it names the option."""
        return Phrase("{0} (position {1} in {2})", self.message, self.position, excerpt(self.text, self.position))

    def __str__(self) -> str:
        return f"{self.option}: {self.located}" if self.option else str(self.located)


class ODataSyntaxError(ODataUrlError):
    """The text does not follow the grammar.

    message is a sentence for the client's developer; expected lists what would have been right, as prose.
    """

    def __init__(
        self, message: Phrase, text: str, position: int, expected: Sequence[str] = (), *, option: str = ""
    ) -> None:
        super().__init__(message, text, position, option=option)
        self.expected = tuple(expected)


class NotSupportedConstruct(ODataUrlError):
    """The whole text follows the grammar, but uses a construct that means nothing here, such as geography."""

    def __init__(self, construct: Phrase, text: str, position: int, *, option: str = "") -> None:
        super().__init__(Phrase("{0} are not supported.", construct), text, position, option=option)
        self.construct = construct


def excerpt(text: str, position: int) -> str:
    """The surroundings of position in quotes, with dots where text goes on."""
    start = max(0, position - EXCERPT_LENGTH)
    end = position + EXCERPT_LENGTH
    return f"'{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}'"


def found_at(text: str, position: int) -> str:
    """What stands at position, as the end of a sentence: the end of the text, a word or a character."""
    if position >= len(text):
        return END_OF_TEXT
    end = position + 1
    if text[position].isalnum() or text[position] in "_$@":
        while end < len(text) and end - position < EXCERPT_LENGTH and (text[end].isalnum() or text[end] in "_."):
            end += 1
    return f"'{text[position:end]}'" if text[position] not in " \t" else Phrase("white space")


# What several modules expect. Those that are arguments where nothing is wrong are made once: reading shall not pay.
END_OF_TEXT: Final = Phrase("the end of the text")
END_OF_PATH: Final = Phrase("the end of the path")
LOGICAL_OPERATOR: Final = Phrase("an operator such as eq or and")
ENTITY_SET_NAME: Final = Phrase("the name of an entity set")
