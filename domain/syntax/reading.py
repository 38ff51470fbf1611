"""One text, read from its beginning to its end."""

from collections.abc import Callable
from typing import Final, TypeVar

from domain.syntax.errors import LOGICAL_OPERATOR, ODataSyntaxError, ODataUrlError
from domain.syntax.options import OptionsParser
from foundation.phrases import Phrase

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
"""Reader → what could have gone on behind what it read."""


def read_whole(text: str, reader: Callable[[OptionsParser], Result], *, option: str = "") -> Result:
    """What reader makes of text, which must be used up; errors name option."""
    parser = OptionsParser(text)
    try:
        result = reader(parser)
        parser.finish(*_BEHIND.get(reader, ()))
    except ODataUrlError as error:
        error.option = option
        raise
    except RecursionError:
        # Only where the caller stands deep in the stack itself: the bound on nesting comes first otherwise.
        raise ODataSyntaxError(Phrase("Nested too deep."), text, parser.position, option=option) from None
    return result
