"""Parser of OData 4.01 URLs with the aggregation extension: text → immutable tree.

Pure: no model, no request, no framework. The grammar is that of the OASIS ABNF construction rules; deviations are
listed in tests/domain/odata/syntax/abnf_deviations.py, each with its reason. Names are not resolved here; the next
stage binds them against a model, and reads ``domain.syntax.ast``.

Every function raises ODataSyntaxError for invalid text (400), and NotSupportedConstruct for valid text that has no
meaning in any model here (501): spatial values and functions, media streams in $expand, dates outside the years 1 to
9999, leap seconds. Time is linear in the length of the text and nesting is bounded (MAX_NESTING).

Text is percent-decoded, except for ``parse_query_options``, ``parse_resource_path`` and ``parse_relative_uri``, which
take raw text, because a URL is split before it is decoded.
"""

from domain.syntax import ast
from domain.syntax.cursor import MAX_NESTING
from domain.syntax.errors import END_OF_TEXT, NotSupportedConstruct, ODataSyntaxError, ODataUrlError
from domain.syntax.functions import FUNCTIONS
from domain.syntax.literal_slots import lift_literals
from domain.syntax.options import OptionsParser
from domain.syntax.paths import resource_path
from domain.syntax.uris import query_options, relative_uri
from domain.syntax.whole_text import parse_whole
from foundation.messages import TranslatableMessage as Message


def parse_relative_uri(text: str, *, plus_is_space: bool = False) -> ast.RelativeUri:
    """``path?options#fragment`` below the service root, still percent-encoded (rule odataRelativeUri).

    Checks which options go with $batch, $metadata and $entity; the fragment of $metadata is kept unchanged.
    """
    return relative_uri(text, plus_is_space=plus_is_space)


def parse_resource_path(text: str) -> ast.ResourcePath:
    """The path below the service root, without leading slash, still percent-encoded (rule resourcePath).

    It is split at "/" before each segment is decoded, so a slash inside a key is written %2F. Empty text is the service
    document. Positions count in the decoded path.
    """
    return resource_path(text)


def parse_query_options(raw_query_string: str, *, plus_is_space: bool = False) -> ast.QueryOptions:
    """All options after the "?", still percent-encoded (rule queryOptions).

    Names of system options may lack the "$" and have any case. ``plus_is_space`` reads "+" as a space, as HTML forms
    do; in OData it is a sign. Positions in errors and nodes count in the decoded value of the option.
    """
    return query_options(raw_query_string, plus_is_space=plus_is_space)


def parse_common_expression(text: str) -> ast.Expression:
    """Rule commonExpr, section 5.1.1."""
    return parse_whole(text, OptionsParser.filter)


def parse_boolean_expression(text: str) -> ast.Expression:
    """Rule boolCommonExpr, the value of $filter. Binding checks that the result is a Boolean."""
    return parse_whole(text, OptionsParser.filter, option="$filter")


def parse_expand(text: str) -> tuple[ast.ExpandItem, ...]:
    """The value of $expand (section 5.1.3)."""
    return parse_whole(text, OptionsParser.expand, option="$expand")


def parse_select(text: str) -> tuple[ast.SelectItem, ...]:
    """The value of $select (section 5.1.4)."""
    return parse_whole(text, OptionsParser.select, option="$select")


def parse_orderby(text: str) -> tuple[ast.OrderItem, ...]:
    """The value of $orderby (section 5.1.5)."""
    return parse_whole(text, OptionsParser.orderby, option="$orderby")


def parse_search(text: str) -> ast.SearchExpression:
    """The value of $search (section 5.1.7)."""
    return parse_whole(text, OptionsParser.search, option="$search")


def parse_compute(text: str) -> tuple[ast.ComputeItem, ...]:
    """The value of $compute (section 5.1.2)."""
    return parse_whole(text, OptionsParser.compute, option="$compute")


def parse_apply(text: str) -> tuple[ast.Transformation, ...]:
    """The value of $apply (OData Extension for Data Aggregation, rule applyExpr)."""
    return parse_whole(text, OptionsParser.apply, option="$apply")


def parse_primitive_literal(text: str) -> ast.Literal:
    """Rule primitiveLiteral, such as the key of an entity; white space is not allowed."""
    return parse_whole(text, _literal)


def _literal(parser: OptionsParser) -> ast.Literal:
    node = parser.expression()
    if not isinstance(node, ast.Literal) or parser.text[0] in " \t(":
        parser.fail(Message("a literal"), at=0)
    if parser.position != len(parser.text):
        parser.fail(END_OF_TEXT)
    return node


__all__ = [
    "FUNCTIONS",
    "MAX_NESTING",
    "NotSupportedConstruct",
    "ODataSyntaxError",
    "ODataUrlError",
    "ast",
    "lift_literals",
    "parse_apply",
    "parse_boolean_expression",
    "parse_common_expression",
    "parse_compute",
    "parse_expand",
    "parse_orderby",
    "parse_primitive_literal",
    "parse_query_options",
    "parse_relative_uri",
    "parse_resource_path",
    "parse_search",
    "parse_select",
]
