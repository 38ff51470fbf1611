"""What can go wrong with the text of an OData URL.

::

    ODataUrlError                 text, position, option
    ├── ODataSyntaxError          the text is not in the grammar: expected, found     → 400
    └── NotSupportedConstruct     it is, but has no meaning in any model here: construct   → 501

Both are raised by the parser only; what names mean is checked later and fails with errors of its own.
"""

from collections.abc import Sequence
from typing import Final

EXCERPT_LENGTH: Final = 40
"""Characters of the text that a message quotes before and behind the position; the text may have a megabyte."""


class ODataUrlError(Exception):
    """The text at position (offset from 0 in text, which is percent-decoded) cannot be served.

    option names the query option that the text is the value of, e.g. ``$filter``; it is empty when the text was
    parsed by itself.
    """

    def __init__(self, message: str, text: str, position: int, *, option: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.position = position
        self.option = option

    def __str__(self) -> str:
        where = f"{self.option}: " if self.option else ""
        return f"{where}{self.message} (position {self.position} in {excerpt(self.text, self.position)})"


class ODataSyntaxError(ODataUrlError):
    """The text does not follow the grammar.

    message is a sentence for the client's developer; expected lists what would have been right, as prose.
    """

    def __init__(
        self, message: str, text: str, position: int, expected: Sequence[str] = (), *, option: str = ""
    ) -> None:
        super().__init__(message, text, position, option=option)
        self.expected = tuple(expected)


class NotSupportedConstruct(ODataUrlError):
    """The whole text follows the grammar, but uses a construct that means nothing here, such as geography."""

    def __init__(self, construct: str, text: str, position: int, *, option: str = "") -> None:
        super().__init__(f"{construct} are not supported.", text, position, option=option)
        self.construct = construct


def excerpt(text: str, position: int) -> str:
    """The surroundings of position in quotes, with dots where text goes on."""
    start = max(0, position - EXCERPT_LENGTH)
    end = position + EXCERPT_LENGTH
    return f"'{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}'"


def found_at(text: str, position: int) -> str:
    """What stands at position, as the end of a sentence: the end of the text, a word or a character."""
    if position >= len(text):
        return "the end of the text"
    end = position + 1
    if text[position].isalnum() or text[position] in "_$@":
        while end < len(text) and end - position < EXCERPT_LENGTH and (text[end].isalnum() or text[end] in "_."):
            end += 1
    return f"'{text[position:end]}'" if text[position] not in " \t" else "white space"


def one_of(expected: Sequence[str]) -> str:
    """``a, b or c``."""
    *most, last = expected
    return f"{', '.join(most)} or {last}" if most else last
