"""The URL syntax of OData 4.01 with the aggregation extension: text in, frozen tree out.

Pure: no model, no request, no framework. The grammar is that of the OASIS ABNF construction rules; deviations are
listed in tests/domain/odata/syntax/abnf_deviations.py, each with its reason. Names mean nothing here; binding
against a model is the next stage, and reads ``domain.syntax.ast``.

Every function raises ODataSyntaxError where text is not in the grammar (400), and NotSupportedConstruct where it is,
but has no meaning in any model here (501): spatial values and functions, media streams in $expand, dates outside the
years 1 to 9999, leap seconds. Time is linear in the length of the text and nesting is bounded (MAX_NESTING).

Text is percent-decoded, except for ``parse_query_options``, ``parse_resource_path`` and ``parse_relative_uri``,
which take it as it came over the wire, because a URL is split before it is decoded.
"""

from typing import Literal as OneOf

from domain.syntax import ast
from domain.syntax.ast import (
    ComputeItem,
    ExpandItem,
    Expression,
    Literal,
    OrderItem,
    QueryOptions,
    RelativeUri,
    ResourcePath,
    SearchExpression,
    SelectItem,
    Transformation,
)
from domain.syntax.cursor import MAX_NESTING
from domain.syntax.errors import END_OF_TEXT, NotSupportedConstruct, ODataSyntaxError, ODataUrlError
from domain.syntax.functions import FUNCTIONS
from domain.syntax.options import OptionsParser
from domain.syntax.paths import resource_path
from domain.syntax.percent import percent_decode
from domain.syntax.reading import read_whole
from domain.syntax.shape import lift_literals
from domain.syntax.uris import query_options, relative_uri
from foundation.phrases import Phrase


def parse_relative_uri(text: str, *, plus_is_space: bool = False) -> RelativeUri:
    """``path?options#fragment`` behind the service root, still percent-encoded (rule odataRelativeUri).

    Which options go with $batch, $metadata and $entity is checked; the fragment of $metadata is kept as it is.
    """
    return relative_uri(text, plus_is_space=plus_is_space)


def parse_resource_path(text: str) -> ResourcePath:
    """The path behind the service root, without leading slash, still percent-encoded (rule resourcePath).

    It is split at "/" and each segment decoded after that, so a slash inside a key is written %2F. Empty text is the
    service document. Positions count in the decoded path.
    """
    return resource_path(text)


def parse_query_options(raw_query_string: str, *, plus_is_space: bool = False) -> QueryOptions:
    """All options behind the "?", still percent-encoded (rule queryOptions).

    Names of system options may lack the "$" and have any case. ``plus_is_space`` reads "+" as HTML forms write it;
    in OData it is a sign. Positions in errors and nodes count in the decoded value of the option.
    """
    return query_options(raw_query_string, plus_is_space=plus_is_space)


def parse_common_expression(text: str) -> Expression:
    """Rule commonExpr, section 5.1.1."""
    return read_whole(text, OptionsParser.filter)


def parse_boolean_expression(text: str) -> Expression:
    """Rule boolCommonExpr, the value of $filter. That it results in a Boolean is found out when it is bound."""
    return read_whole(text, OptionsParser.filter, option="$filter")


def parse_parameter_value(text: str) -> Expression:
    """Rule parameterValue: the value of a parameter alias, an expression or JSON."""
    return read_whole(text, OptionsParser.parameter_value)


def parse_expand(text: str) -> tuple[ExpandItem, ...]:
    """The value of $expand (section 5.1.3)."""
    return read_whole(text, OptionsParser.expand, option="$expand")


def parse_select(text: str) -> tuple[SelectItem, ...]:
    """The value of $select (section 5.1.4)."""
    return read_whole(text, OptionsParser.select, option="$select")


def parse_orderby(text: str) -> tuple[OrderItem, ...]:
    """The value of $orderby (section 5.1.5)."""
    return read_whole(text, OptionsParser.orderby, option="$orderby")


def parse_search(text: str) -> SearchExpression:
    """The value of $search (section 5.1.7)."""
    return read_whole(text, OptionsParser.search, option="$search")


def parse_compute(text: str) -> tuple[ComputeItem, ...]:
    """The value of $compute (section 5.1.2)."""
    return read_whole(text, OptionsParser.compute, option="$compute")


def parse_apply(text: str) -> tuple[Transformation, ...]:
    """The value of $apply (OData Extension for Data Aggregation, rule applyExpr)."""
    return read_whole(text, OptionsParser.apply, option="$apply")


def parse_primitive_literal(text: str) -> Literal:
    """Rule primitiveLiteral, such as the key of an entity; white space is not tolerated."""
    return read_whole(text, _literal)


def parse_top(text: str) -> Literal:
    """The value of $top (section 5.1.6), a number that is not negative."""
    return read_whole(text, OptionsParser.count_literal, option="$top")


def parse_skip(text: str) -> Literal:
    """The value of $skip (section 5.1.6), a number that is not negative."""
    return read_whole(text, OptionsParser.count_literal, option="$skip")


def parse_count(text: str) -> bool:
    """The value of $count (section 5.1.6)."""
    return read_whole(text, OptionsParser.boolean, option="$count")


def parse_levels(text: str) -> int | OneOf["max"]:
    """The value of $levels (section 5.1.3.1)."""
    return read_whole(text, OptionsParser.levels, option="$levels")


def parse_format(text: str) -> str:
    """The value of $format (section 5.1.8): atom, json, xml or a media type with its parameters."""
    return read_whole(text, OptionsParser.format, option="$format")


def parse_skiptoken(text: str) -> str:
    """The value of $skiptoken: any text, but some."""
    return read_whole(text, OptionsParser.opaque, option="$skiptoken")


def parse_deltatoken(text: str) -> str:
    """The value of $deltatoken: any text, but some."""
    return read_whole(text, OptionsParser.opaque, option="$deltatoken")


def parse_schemaversion(text: str) -> str:
    """The value of $schemaversion: a version or ``*``."""
    return read_whole(text, OptionsParser.schema_version, option="$schemaversion")


def parse_index(text: str) -> int:
    """The value of $index: a position in an ordered collection, negative from its end."""
    return read_whole(text, OptionsParser.index, option="$index")


def _literal(parser: OptionsParser) -> Literal:
    node = parser.expression()
    if not isinstance(node, Literal) or parser.text[0] in " \t(":
        parser.fail(Phrase("a literal"), at=0)
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
    "parse_count",
    "parse_deltatoken",
    "parse_expand",
    "parse_format",
    "parse_index",
    "parse_levels",
    "parse_orderby",
    "parse_parameter_value",
    "parse_primitive_literal",
    "parse_query_options",
    "parse_relative_uri",
    "parse_resource_path",
    "parse_schemaversion",
    "parse_search",
    "parse_select",
    "parse_skip",
    "parse_skiptoken",
    "parse_top",
    "percent_decode",
]
