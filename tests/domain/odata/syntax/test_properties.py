"""What holds for all texts and trees."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.syntax import (
    ODataUrlError,
    ast,
    parameterize_literals,
    parse_boolean_expression,
    parse_orderby,
    parse_query_options,
    parse_resource_path,
    parse_search,
    parse_select,
)
from domain.syntax.ast import LiteralKind as Kind

from .rules import (
    parse_apply,
    parse_common_expression,
    parse_compute,
    parse_expand,
    parse_primitive_literal,
    parse_relative_uri,
)
from .unparse import quoted, unparse

PARSERS: list[Callable[[str], object]] = [
    parse_apply, parse_boolean_expression, parse_compute, parse_expand, parse_orderby, parse_primitive_literal,
    parse_query_options, parse_relative_uri, parse_resource_path, parse_search, parse_select,
]  # fmt: skip

TOKENS = r"""( ) [ ] { } , ; : / ' '' " @ $ $it $count $filter $root/ $value $ref = & ? # % %27 * - + . \ a b Ns.T ж
null true not eq ne and or in has add mul as with from sum desc any( all( x: contains( case( cast( now() 1 1.5 10:30
2024-01-01 'x' Ns.E'x' duration'P1D' binary'AQ' geography'SRID=1;Point(1 NOT OR AND groupby(( aggregate( identity
$select= $expand= $top= $levels=max 12345678-1234-1234-1234-123456789012""".split()  # noqa: SIM905
WORDS = st.sampled_from([*TOKENS, " ", "\x00"])

GARBAGE = st.text() | st.lists(WORDS, max_size=25).map("".join) | st.lists(WORDS, max_size=25).map(" ".join)


@pytest.mark.parametrize("parse", PARSERS)
@given(text=GARBAGE)
def test_garbage_raises_nothing_but_our_errors(parse: Callable[[str], object], text: str) -> None:
    error = error_of(parse, text)
    assert error is None or (0 <= error.position <= len(error.text) and str(error))


def error_of(parse: Callable[[str], object], text: str) -> ODataUrlError | None:
    try:
        parse(text)
    except ODataUrlError as error:
        return error
    return None


@given(st.text())
def test_every_string_survives_quoting(text: str) -> None:
    assert parse_primitive_literal(quoted(text)).value == text


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_decimals_are_exact(value: Decimal) -> None:
    assert parse_primitive_literal(f"{value:f}").value == value


@given(st.datetimes())
def test_date_times_are_exact(value: datetime) -> None:
    assert parse_primitive_literal(value.isoformat() + "Z").value == value.replace(tzinfo=UTC)


@given(st.dates())
def test_dates_are_exact(value: date) -> None:
    assert parse_primitive_literal(value.isoformat()).value == value


@given(st.times())
def test_times_are_exact(value: time) -> None:
    assert parse_primitive_literal(value.isoformat()).value == value


@given(st.uuids())
def test_guids_are_canonical(value: object) -> None:
    assert parse_primitive_literal(str(value).upper()).value == str(value)


@given(st.binary())
def test_binary_is_exact(value: bytes) -> None:
    padded = urlsafe_b64encode(value).decode()
    assert parse_primitive_literal(f"binary'{padded}'").value == value
    assert parse_primitive_literal(f"binary'{padded.rstrip('=')}'").value == value


NAMES = st.sampled_from(["Name", "Lines", "x", "eq", "Desc", "Цена"])
LITERALS = st.one_of(
    st.integers(-(10**20), 10**20).map(lambda value: ast.Literal(Kind.INTEGER, value, str(value))),
    st.text(alphabet="ab'ж \"(", max_size=5).map(lambda value: ast.Literal(Kind.STRING, value, quoted(value))),
    st.sampled_from([ast.Literal(Kind.NULL, None, "null"), ast.Literal(Kind.BOOLEAN, True, "true")]),
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: ast.Path(tuple(map(ast.NameStep, names))))


def _extended(inner: st.SearchStrategy[ast.Expression]) -> st.SearchStrategy[ast.Expression]:
    pairs = st.tuples(inner, inner)
    several = st.lists(inner, min_size=2, max_size=4).map(tuple)
    return st.one_of(
        st.builds(ast.Logical, st.sampled_from(["and", "or"]), several),
        st.builds(ast.Not, inner),
        st.builds(lambda op, both: ast.Comparison(op, *both), st.sampled_from(["eq", "ne", "lt", "ge"]), pairs),
        st.builds(lambda op, both: ast.Arithmetic(op, *both), st.sampled_from(["add", "sub", "mul", "divby"]), pairs),
        st.builds(lambda both: ast.FunctionCall("contains", both), pairs),
        st.builds(
            ast.Membership, inner, st.lists(LITERALS, max_size=3).map(lambda i: ast.CollectionExpression(tuple(i)))
        ),
        st.builds(lambda p: ast.Path((ast.NameStep("Lines"), ast.LambdaStep("any", "l", p))), inner),
        st.builds(lambda both: ast.Case((ast.CaseBranch(*both),)), pairs),
        st.builds(lambda e: ast.Cast(e, ast.TypeName("Edm.String")), inner),
    )


TREES = st.recursive(st.one_of(LITERALS, PATHS), _extended, max_leaves=12)


@given(TREES)
def test_trees_survive_being_written_and_read(tree: ast.Expression) -> None:
    assert parse_common_expression(unparse(tree)) == tree


@given(TREES)
def test_lifting_takes_out_all_values_and_nothing_else(tree: ast.Expression) -> None:
    shape, values = parameterize_literals(tree)
    again, same_values = parameterize_literals(tree)
    assert (shape, values) == (again, same_values)
    assert hash(shape) == hash(again)
    assert parameterize_literals(shape) == (shape, ())
