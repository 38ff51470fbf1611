"""Expressions: text → tree, shown as text with all parentheses and as nodes."""

from decimal import Decimal

import pytest

from domain.syntax import ast, parse_boolean_expression
from domain.syntax.ast import (
    CollectionExpression,
    Comparison,
    CountStep,
    FunctionCall,
    Key,
    LambdaStep,
    Literal,
    LiteralKind,
    Logical,
    NameStep,
    ParameterAlias,
    Path,
    VariableStep,
)

from .rules import parse_common_expression
from .unparse import unparse

GUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def path(*names: str) -> Path:
    return Path(tuple(NameStep(name) for name in names))


def number(value: int) -> Literal:
    return Literal(LiteralKind.INTEGER, value)


def string(value: str) -> Literal:
    return Literal(LiteralKind.STRING, value)


READINGS = [
    # precedence (5.1.1.17)
    ("a or b and c", "(a or (b and c))"),
    ("a and b or c", "((a and b) or c)"),
    ("(a or b) and c", "((a or b) and c)"),
    ("a and b and c", "(a and b and c)"),
    ("a and (b and c)", "(a and (b and c))"),
    ("a eq b gt c", "(a eq (b gt c))"),
    ("a add b mul c", "(a add (b mul c))"),
    ("a sub b sub c", "((a sub b) sub c)"),
    ("a mul b div c divby d mod e", "((((a mul b) div c) divby d) mod e)"),
    ("a add b eq c sub 1 and d", "(((a add b) eq (c sub 1)) and d)"),
    ("not a eq b", "((not a) eq b)"),
    ("not (a eq b)", "(not (a eq b))"),
    ("not a and b", "((not a) and b)"),
    ("not not a", "(not (not a))"),
    ("not a in (1)", "(not (a in [1]))"),
    ("-a add b", "((- a) add b)"),
    ("- a mul b", "((- a) mul b)"),
    ("--1", "(- -1)"),
    ("a add -1", "(a add -1)"),
    ("a add b in (1,2)", "(a add (b in [1,2]))"),
    ("a has Ns.E'X' and b", "((a has Ns.E'X') and b)"),
    # case and white space
    ("a EQ 1 AND NOT b", "((a eq 1) and (not b))"),
    ("ToLower(a) eq MATCHESPATTERN(b,'^x')", "(tolower(a) eq matchesPattern(b,'^x'))"),
    ("a\teq  1", "(a eq 1)"),
    ("( a eq 1 )", "(a eq 1)"),
    ("contains( a , 'x' )", "contains(a,'x')"),
    ("not(a)and(b)", "((not a) and b)"),
    ("a in(1,2)", "(a in [1,2])"),
    # words that are operators elsewhere are names here
    ("eq eq eq", "(eq eq eq)"),
    ("not eq 1", "(not eq 1)"),
    ("and and or", "(and and or)"),
    ("length eq 1", "(length eq 1)"),
    ("any/all eq desc", "(any/all eq desc)"),
    # paths
    ("a/b/c", "a/b/c"),
    ("Ns.Type/a", "Ns.Type/a"),
    ("a/Ns.Type/b", "a/Ns.Type/b"),
    ("Lines(1)/a", "Lines(1)/a"),
    (f"Lines({GUID})/a", f"Lines({GUID})/a"),
    ("Lines(a=1,b='x')/c", "Lines(a=1,b='x')/c"),
    ("$it/a eq $this", "($it/a eq $this)"),
    ("$root/Set('x')/a", "$root/Set('x')/a"),
    ("@p eq @q/a", "(@p eq @q/a)"),
    ("@Ns.Term eq 1", "(@Ns.Term eq 1)"),
    ("@term#q/x", "@term#q/x"),
    ("a/@Ns.Term#q", "a/@Ns.Term#q"),
    ("Ns.F(a=1,b=@p)/c", "Ns.F(a=1,b=@p)/c"),
    ("F()", "F()"),
    ("F(a=1)(2)/b", "F(a=1)(2)/b"),
    ('F(a=[1,"x"],b={"k":null})', 'F(a=[1,"x"],b={"k":null})'),
    # collections
    ("Lines/any()", "Lines/any()"),
    ("Lines/ANY(l:l/a eq 1)", "Lines/any(l:(l/a eq 1))"),
    ("Lines/all( l : l/Parts/any(p:p/x gt l/y) )", "Lines/all(l:l/Parts/any(p:(p/x gt l/y)))"),
    ("Lines/$count gt 2", "(Lines/$count gt 2)"),
    ("Lines/$count($filter=a eq 1) gt 2", "(Lines/$count($filter=(a eq 1)) gt 2)"),
    ("Lines/$count(search=x y;filter=a) eq 1", "(Lines/$count($filter=a;$search=(x AND y)) eq 1)"),
    ("Lines/$filter(a eq 1)/any(l:l/b)", "Lines/$filter((a eq 1))/any(l:l/b)"),
    ("Lines/$filter(a)(7)/b", "Lines/$filter(a)(7)/b"),
    ("Lines/aggregate(Amount with sum) gt 5", "(Lines/aggregate(Amount with sum) gt 5)"),
    ("$these/aggregate($count)", "$these/aggregate($count)"),
    # in
    ("a in ()", "(a in [])"),
    ("a in ('x', 'y')", "(a in ['x','y'])"),
    ('a in ["x","y"]', '(a in ["x","y"])'),
    ("a in @p", "(a in @p)"),
    ("a in (b)", "(a in b)"),
    ("a in b/c", "(a in b/c)"),
    ("a in (1,2) eq true", "((a in [1,2]) eq true)"),
    # forms of their own
    ("cast(a,Edm.String) eq 'x'", "(cast(a,Edm.String) eq 'x')"),
    ("cast(Edm.String)", "cast(Edm.String)"),
    ("isof(Erp.X)", "isof(Erp.X)"),
    ("isof( a , Collection(Erp.X) )", "isof(a,Collection(Erp.X))"),
    ("case(a eq 1:'x',true:'y')", "case((a eq 1) : 'x',true : 'y')"),
    ("case(a eq 10:20,true:30)", "case((a eq 10) : 20,true : 30)"),
    ("case(t lt 10:30:20)", "case((t lt 10:30) : 20)"),
    ("case(t lt 10:30:20.5 : 1)", "case((t lt 10:30:20.5) : 1)"),
    # platform
    ("equalnull(a,1) or lessequalnull(a,1) or GreaterEqualNull(a,1)",
     "(equalnull(a,1) or lessequalnull(a,1) or greaterequalnull(a,1))"),
    ("yearmonth(Date) eq 202501", "(yearmonth(Date) eq 202501)"),
    ("CustomProperty_x eq 'v'", "(CustomProperty_x eq 'v')"),
    ("Цена eq 1", "(Цена eq 1)"),
]  # fmt: skip


@pytest.mark.parametrize("text, reading", READINGS)
def test_text_is_read_so(text: str, reading: str) -> None:
    assert unparse(parse_common_expression(text)) == reading


@pytest.mark.parametrize("text", [text for text, _ in READINGS])
def test_reading_what_was_written_from_a_tree_gives_the_tree(text: str) -> None:
    tree = parse_common_expression(text)
    assert parse_common_expression(unparse(tree)) == tree


def test_comparison_of_a_path_with_a_literal() -> None:
    tree = parse_boolean_expression("Customer/Name eq 'O''Neil'")
    assert tree == Comparison("eq", path("Customer", "Name"), string("O'Neil"))


def test_logical_chain_is_one_node() -> None:
    tree = parse_boolean_expression("a and b and 1 lt 2")
    assert tree == Logical("and", (path("a"), path("b"), Comparison("lt", number(1), number(2))))


def test_long_logical_chains_do_not_nest() -> None:
    tree = parse_boolean_expression(" or ".join(["Id eq 1"] * 5000))
    assert isinstance(tree, Logical)
    assert len(tree.operands) == 5000


def test_function_call_has_the_canonical_name() -> None:
    assert parse_common_expression("matchespattern(a,'x')") == FunctionCall("matchesPattern", (path("a"), string("x")))


def test_lambda_names_its_variable() -> None:
    tree = parse_boolean_expression("Lines/any(l:l/Open)")
    assert tree == Path((NameStep("Lines"), LambdaStep("any", "l", path("l", "Open"))))


def test_count_step_ends_a_path() -> None:
    assert parse_common_expression("Lines/$count") == Path((NameStep("Lines"), CountStep()))


def test_positional_parentheses_are_a_key() -> None:
    tree = parse_common_expression("$root/Set(1)")
    assert tree == Path((VariableStep("$root"), NameStep("Set", (Key(number(1)),))))


def test_lists_in_parentheses_and_brackets_are_the_same() -> None:
    round_list = parse_common_expression("a in (1,'x')")
    assert round_list == parse_common_expression('a in [1,"x"]')
    assert round_list == ast.Membership(path("a"), CollectionExpression((number(1), string("x"))))


def test_alias_alone_is_no_path() -> None:
    assert parse_common_expression("@p") == ParameterAlias("p")


def test_positions_point_into_the_text_and_are_not_compared() -> None:
    tree = parse_boolean_expression("a eq  'x'")
    assert isinstance(tree, Comparison)
    assert (tree.left.position, tree.right.position) == (0, 6)
    assert tree == parse_boolean_expression("a eq 'x'")
    assert hash(tree) == hash(parse_boolean_expression("a eq 'x'"))


def test_decimals_compare_by_value_and_keep_their_text() -> None:
    short, long = parse_common_expression("1.5"), parse_common_expression("1.50")
    assert short == long == Literal(LiteralKind.DECIMAL, Decimal("1.5"))
    assert isinstance(long, Literal)
    assert long.text == "1.50"
