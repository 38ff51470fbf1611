"""Functions with positional arguments: OData's (5.1.1.4 ff.) and the platform's."""

from difflib import get_close_matches
from typing import Final, NamedTuple


class Function(NamedTuple):
    """A function; name is the canonical spelling, which differs from the key in case only."""

    name: str
    least_arguments: int
    most_arguments: int
    is_geo: bool = False


_STANDARD: Final = (
    Function("concat", 2, 2),
    Function("contains", 2, 2),
    Function("endswith", 2, 2),
    Function("indexof", 2, 2),
    Function("length", 1, 1),
    Function("matchesPattern", 2, 2),
    Function("startswith", 2, 2),
    Function("substring", 2, 3),
    Function("tolower", 1, 1),
    Function("toupper", 1, 1),
    Function("trim", 1, 1),
    Function("hassubset", 2, 2),
    Function("hassubsequence", 2, 2),
    Function("year", 1, 1),
    Function("month", 1, 1),
    Function("day", 1, 1),
    Function("hour", 1, 1),
    Function("minute", 1, 1),
    Function("second", 1, 1),
    Function("fractionalseconds", 1, 1),
    Function("totalseconds", 1, 1),
    Function("date", 1, 1),
    Function("time", 1, 1),
    Function("totaloffsetminutes", 1, 1),
    Function("mindatetime", 0, 0),
    Function("maxdatetime", 0, 0),
    Function("now", 0, 0),
    Function("round", 1, 1),
    Function("floor", 1, 1),
    Function("ceiling", 1, 1),
    Function("geo.distance", 2, 2, is_geo=True),
    Function("geo.length", 1, 1, is_geo=True),
    Function("geo.intersects", 2, 2, is_geo=True),
)

_AGGREGATION: Final = (Function("isdefined", 1, 1),)

_PLATFORM: Final = (
    Function("equalnull", 2, 2),
    Function("lessequalnull", 2, 2),
    Function("greaterequalnull", 2, 2),
    Function("yearmonth", 1, 1),
)

SPECIAL_FORMS: Final = ("case", "cast", "isof")
"""Called like functions, but with a grammar of their own."""

FUNCTIONS: Final[dict[str, Function]] = {
    function.name.lower(): function for function in (*_STANDARD, *_AGGREGATION, *_PLATFORM)
}
"""Lower-case name → function; names are case-insensitive as 4.01 asks."""


def names_near(name: str) -> list[str]:
    """Similar function names, best first."""
    near = get_close_matches(name.lower()[:64], [*FUNCTIONS, *SPECIAL_FORMS], n=3, cutoff=0.75)
    return [FUNCTIONS[key].name if key in FUNCTIONS else key for key in near]
