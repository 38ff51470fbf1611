"""Parser of OData 4.01 URLs with the aggregation extension: text → immutable tree.

Pure: no model, no request, no framework. The grammar is that of the OASIS ABNF construction rules; deviations are
listed in tests/domain/odata/syntax/abnf_deviations.py, each with its reason. Names are not resolved here; the next
stage binds them against a model, and reads ``domain.syntax.ast``.

Every function raises ODataSyntaxError for invalid text (400), and NotSupportedConstruct for valid text that has no
meaning in any model here (501): spatial values and functions, media streams in $expand, dates outside the years 1 to
9999, leap seconds. Time is linear in the length of the text and nesting is bounded (MAX_NESTING).

Text is percent-decoded, except for ``parse_query_options`` and ``parse_resource_path``, which take raw text, because a
URL is split before it is decoded.
"""

from domain.syntax import ast
from domain.syntax.cursor import MAX_NESTING
from domain.syntax.errors import NotSupportedConstruct, ODataSyntaxError, ODataUrlError
from domain.syntax.functions import FUNCTIONS
from domain.syntax.literal_slots import parameterize_literals
from domain.syntax.options import OptionsParser
from domain.syntax.paths import parse_resource_path
from domain.syntax.uris import parse_query_options
from domain.syntax.whole_text import parse_whole


def parse_boolean_expression(text: str) -> ast.Expression:
    """Rule boolCommonExpr, the value of $filter. Binding checks that the result is a Boolean."""
    return parse_whole(text, OptionsParser.filter, option="$filter")


def parse_select(text: str) -> tuple[ast.SelectItem, ...]:
    """The value of $select (section 5.1.4)."""
    return parse_whole(text, OptionsParser.select, option="$select")


def parse_orderby(text: str) -> tuple[ast.OrderItem, ...]:
    """The value of $orderby (section 5.1.5)."""
    return parse_whole(text, OptionsParser.orderby, option="$orderby")


def parse_search(text: str) -> ast.SearchExpression:
    """The value of $search (section 5.1.7)."""
    return parse_whole(text, OptionsParser.search, option="$search")


__all__ = [
    "FUNCTIONS",
    "MAX_NESTING",
    "NotSupportedConstruct",
    "ODataSyntaxError",
    "ODataUrlError",
    "ast",
    "parameterize_literals",
    "parse_boolean_expression",
    "parse_orderby",
    "parse_query_options",
    "parse_resource_path",
    "parse_search",
    "parse_select",
]
