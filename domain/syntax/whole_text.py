"""Runs a parser over a whole text."""

from collections.abc import Callable
from typing import Final, TypeVar

from domain.syntax.errors import LOGICAL_OPERATOR, ODataSyntaxError, ODataUrlError
from domain.syntax.options import OptionsParser
from foundation.messages import TranslatableMessage as Message

Result = TypeVar("Result")

_BEHIND: Final[dict[Callable[[OptionsParser], object], tuple[str, ...]]] = {
    OptionsParser.compute: ("','",),
    OptionsParser.expand: ("','",),
    OptionsParser.filter: (LOGICAL_OPERATOR,),
    OptionsParser.orderby: (LOGICAL_OPERATOR, "asc", "desc", "','"),
    OptionsParser.parameter_value: (LOGICAL_OPERATOR,),
    OptionsParser.search: ("AND", "OR"),
    OptionsParser.select: ("','",),
}
"""Reader → tokens that may follow its value, for errors."""


def parse_whole(text: str, reader: Callable[[OptionsParser], Result], *, option: str = "") -> Result:
    """Parse all of text with reader; errors name option."""
    parser = OptionsParser(text)
    try:
        result = reader(parser)
        parser.finish(*_BEHIND.get(reader, ()))
    except ODataUrlError as error:
        error.option = option
        raise
    except RecursionError:
        # Happens only if the caller is deep in the stack; else the limit on nesting is reached first.
        raise ODataSyntaxError(Message("Nested too deep."), text, parser.position, option=option) from None
    return result
