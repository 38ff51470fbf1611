"""Hostile texts: a megabyte is read or refused in linear time, and nothing nests without bound."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from domain.syntax import (
    MAX_NESTING,
    ODataSyntaxError,
    ODataUrlError,
    parameterize_literals,
    parse_boolean_expression,
    parse_orderby,
    parse_query_options,
    parse_resource_path,
    parse_search,
    parse_select,
)
from tests.support.measuring import slowness

from .rules import parse_apply, parse_expand

MEGABYTE = 1_000_000
Parse = Callable[[str], object]

HOSTILE: list[tuple[Parse, str, str, str]] = [
    # parser, beginning, what is repeated up to a megabyte, end
    (parse_boolean_expression, "", "(", ""),
    (parse_boolean_expression, "", "( ", ""),
    (parse_boolean_expression, "", "not ", "a"),
    (parse_boolean_expression, "", "-", "a"),
    (parse_boolean_expression, "", "- ", "a"),
    (parse_boolean_expression, "a", " and a eq 1", ""),
    (parse_boolean_expression, "a", " or a and b", ""),
    (parse_boolean_expression, "1", " add 1", ""),
    (parse_boolean_expression, "1", " add 1 mul 2", ""),
    (parse_boolean_expression, "a", " eq a", ""),
    (parse_boolean_expression, "a", " in (1)", ""),
    (parse_boolean_expression, "a in (1", ",1", ")"),
    (parse_boolean_expression, "", "a in (", ""),
    (parse_boolean_expression, "'", "''", "'"),
    (parse_boolean_expression, "'", "''a", ""),
    (parse_boolean_expression, "", "x", ""),
    (parse_boolean_expression, "", "ж", ""),
    (parse_boolean_expression, "a", ".a", ""),
    (parse_boolean_expression, "a", "/a", ""),
    (parse_boolean_expression, "", "a/any(x:", ""),
    (parse_boolean_expression, "", "a/$count($filter=", ""),
    (parse_boolean_expression, "", "a/$filter(", ""),
    (parse_boolean_expression, "", "a/aggregate(", ""),
    (parse_boolean_expression, "", "length(", ""),
    (parse_boolean_expression, "", "f(a=", ""),
    (parse_boolean_expression, "f(a=1", ",a=1", ")"),
    (parse_boolean_expression, "", "case(", ""),
    (parse_boolean_expression, "case(a:10:20", ",a:10:20", ")"),
    (parse_boolean_expression, "", "cast(", ""),
    (parse_boolean_expression, "", "[", ""),
    (parse_boolean_expression, "", '{"a":', ""),
    (parse_boolean_expression, '["', "\\u0041", '"]'),
    (parse_boolean_expression, '["', "\\", ""),
    (parse_boolean_expression, "", "1", ""),
    (parse_boolean_expression, "1e", "9", ""),
    (parse_boolean_expression, "1.", "9", ""),
    (parse_boolean_expression, "", "1-", ""),
    (parse_boolean_expression, "", "12345678-1234-", ""),
    (parse_boolean_expression, "duration'P", "1", "D'"),
    (parse_boolean_expression, "binary'", "abcd", "!'"),
    (parse_boolean_expression, "Ns.E'a", ",a", "'"),
    (parse_boolean_expression, "geography'SRID=1;", "GeometryCollection(", ""),
    (parse_boolean_expression, "geography'SRID=1;LineString(1 1", ",1 1", ""),
    (parse_boolean_expression, "a", " ", "b"),
    (parse_boolean_expression, "", "@", ""),
    (parse_search, "a", " a", ""),
    (parse_search, "", "(", ""),
    (parse_search, "", "NOT ", "a"),
    (parse_search, "a", " AND a OR a", ")"),
    (parse_search, "", '"a" ', ""),
    (parse_expand, "a", ",a", ""),
    (parse_expand, "a", "/a", ""),
    (parse_expand, "", "a($expand=", ""),
    (parse_expand, "a(@a=1", ";@a=1", ")"),
    (parse_select, "a", ",a", ""),
    (parse_select, "", "a($select=", ""),
    (parse_select, "", "a(b,", ""),
    (parse_orderby, "a", ",a desc", ""),
    (parse_apply, "identity", "/identity", ""),
    (parse_apply, "", "concat(identity,", ""),
    (parse_apply, "", "groupby((a),", ""),
    (parse_apply, "aggregate(a", ",a", ")"),
    (parse_apply, "aggregate(a with sum", " from b with sum", " as c)"),
    (parse_query_options, "", "&", ""),
    (parse_query_options, "a=", "%41", ""),
    (parse_query_options, "$filter=", "%28", ""),
    (parse_resource_path, "a", "/a", ""),
    (parse_resource_path, "", "a(", ""),
    (parse_resource_path, "a/", "$filter(a)/", "b"),
    (parse_resource_path, "a/", "$filter(a/", ""),
    (parse_resource_path, "a('", "%2F", "')"),
]


@pytest.mark.parametrize("parse, start, middle, end", HOSTILE, ids=[f"{s}{m}…" for _, s, m, _ in HOSTILE])
def test_a_megabyte_is_read_or_refused_quickly(parse: Parse, start: str, middle: str, end: str) -> None:
    text = start + middle * (MEGABYTE // len(middle)) + end
    started = time.process_time()
    with suppress(ODataUrlError):
        hash(parse(text))
    # A fifth of this on an idle machine; what is not linear takes minutes.
    assert time.process_time() - started < 5 * slowness()


NESTED: list[tuple[Parse, str, str, str]] = [
    (parse_boolean_expression, "(", "a", ")"),
    (parse_boolean_expression, "not ", "a", ""),
    (parse_boolean_expression, "- ", "a", ""),
    (parse_boolean_expression, "length(", "a", ")"),
    (parse_boolean_expression, "1 add (2 mul ", "a", ")"),
    (parse_boolean_expression, "b/any(x:1 eq 2 or ", "a", ")"),
    (parse_boolean_expression, "b/$count($filter=1 eq 2 or ", "a", ")"),
    (parse_boolean_expression, "b/$filter(", "a", ")/c"),
    (parse_boolean_expression, "b/aggregate(", "a", " with sum)"),
    (parse_boolean_expression, "f(p=", "a", ")"),
    (parse_boolean_expression, "case(true:", "a", ")"),
    (parse_boolean_expression, "cast(", "a", ",Edm.String)"),
    (parse_boolean_expression, "b in (", "a", ")"),
    (parse_boolean_expression, "[", "a", "]"),
    (parse_boolean_expression, '{"a":', "a", "}"),
    (parse_search, "(", "a", ")"),
    (parse_search, "NOT ", "a", ""),
    (parse_expand, "b($expand=", "a", ")"),
    (parse_select, "b($select=", "a", ")"),
    (parse_apply, "groupby((b),", "identity", ")"),
    (parse_apply, "concat(identity,", "identity", ")"),
    (parse_apply, "nest(", "identity", " as a)"),
]


@pytest.mark.parametrize("parse, start, core, end", NESTED, ids=[case[1] for case in NESTED])
def test_nesting_has_a_bound_and_below_it_room_on_the_stack(parse: Parse, start: str, core: str, end: str) -> None:
    deepest = 0
    for levels in range(1, MAX_NESTING + 10):
        text = start * levels + core + end * levels
        try:
            tree = parse(text)
        except ODataSyntaxError:
            break
        deepest = levels
        assert hash(parameterize_literals(tree)[0]) == hash(parameterize_literals(parse(text))[0])
    with pytest.raises(ODataSyntaxError, match="Nested deeper"):
        parse(text)
    assert deepest >= 20, "real queries nest a few levels, with several nodes a level"


def test_parsing_at_the_bound_needs_no_more_than_the_usual_stack() -> None:
    text = "b/any(x:1 eq 2 or " * 30 + "a" + ")" * 30
    limit = sys.getrecursionlimit()
    depth = len(_frames())
    sys.setrecursionlimit(depth + 700)
    try:
        parse_boolean_expression(text)
    finally:
        sys.setrecursionlimit(limit)


def test_where_the_stack_is_used_up_already_the_error_is_ours() -> None:
    limit = sys.getrecursionlimit()
    depth = len(_frames())
    sys.setrecursionlimit(depth + 60)
    try:
        with pytest.raises(ODataSyntaxError, match="Nested too deep"):
            parse_boolean_expression("(" * 90 + "a" + ")" * 90)
    finally:
        sys.setrecursionlimit(limit)


def _frames() -> list[object]:
    found: list[object] = []
    frame: object = sys._getframe()
    while frame is not None:
        found.append(frame)
        frame = getattr(frame, "f_back", None)
    return found


CHAINS = [
    ("a", " add 1", ""),
    ("a", " in (1)", ""),
    ("a", " has 'x'", ""),
    ("a/aggregate(", " add 1", " with sum from b with sum)"),
    ("length(", " mul 2", ")"),
    ("a/any(x:", " eq 1", ")"),
    ("a/$count($filter=", " in (1)", ";$search=x)"),
    ("case(true:", " sub 1", ")"),
    ("f(p=", " div 1", ",q=1)"),
    ("cast(", " lt 1", ",Edm.String)"),
    ("[", " sub 1", ",2]"),
]


@pytest.mark.parametrize("start, link, end", CHAINS, ids=[start + link for start, link, _ in CHAINS])
def test_chains_inside_nesting_add_up(start: str, link: str, end: str) -> None:
    """Forty links at each of many levels: each is far below the bound, together they are far above."""
    text = "a"
    for _ in range(10):
        text = f"{start}{text}{link * 40}{end}" if end else text + link * 40
    with pytest.raises(ODataSyntaxError, match="Nested deeper"):
        parse_boolean_expression(text)


@pytest.mark.parametrize("operator", ["add", "mul", "eq", "lt"])
def test_chains_of_binary_operators_count_as_nesting(operator: str) -> None:
    parse_boolean_expression(f" {operator} ".join(["1"] * 50))
    with pytest.raises(ODataSyntaxError, match="Nested deeper"):
        parse_boolean_expression(f" {operator} ".join(["1"] * 200))
