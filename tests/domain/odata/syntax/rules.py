"""Rules of the grammar that the product reads only as parts of query options, as parsers of a whole text."""

from domain.syntax import ast, parse_query_options, parse_resource_path
from domain.syntax.errors import END_OF_TEXT
from domain.syntax.options import OptionsParser
from domain.syntax.whole_text import parse_whole
from foundation.messages import TranslatableMessage as Message


def parse_common_expression(text: str) -> ast.Expression:
    """Rule commonExpr, section 5.1.1."""
    return parse_whole(text, OptionsParser.filter)


def parse_expand(text: str) -> tuple[ast.ExpandItem, ...]:
    """The value of $expand (section 5.1.3)."""
    return parse_whole(text, OptionsParser.expand, option="$expand")


def parse_compute(text: str) -> tuple[ast.ComputeItem, ...]:
    """The value of $compute (section 5.1.2)."""
    return parse_whole(text, OptionsParser.compute, option="$compute")


def parse_apply(text: str) -> tuple[ast.Transformation, ...]:
    """The value of $apply (OData Extension for Data Aggregation, rule applyExpr)."""
    return parse_whole(text, OptionsParser.apply, option="$apply")


def parse_primitive_literal(text: str) -> ast.Literal:
    """Rule primitiveLiteral; white space is not allowed."""
    return parse_whole(text, _literal)


def parse_relative_uri(text: str) -> tuple[ast.ResourcePath, ast.QueryOptions]:
    """Rule odataRelativeUri. A server is not sent the fragment."""
    path, _, options = text.partition("#")[0].partition("?")
    return parse_resource_path(path), parse_query_options(options)


def _literal(parser: OptionsParser) -> ast.Literal:
    node = parser.expression()
    if not isinstance(node, ast.Literal) or parser.text[0] in " \t(":
        parser.fail(Message("a literal"), at=0)
    if parser.position != len(parser.text):
        parser.fail(END_OF_TEXT)
    return node
