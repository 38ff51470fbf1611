"""parameterize_literals: trees that differ in values only have the same shape."""

from decimal import Decimal

import pytest

from domain.syntax import parameterize_literals, parse_boolean_expression, parse_query_options, parse_resource_path
from domain.syntax.ast import Comparison, LiteralKind, NameStep, Path, Slot


def test_values_become_slots_in_reading_order() -> None:
    _, values = parameterize_literals(parse_boolean_expression("a eq 'x' and b in (1,2.5)"))
    assert values == ("x", 1, Decimal("2.5"))
    first, _ = parameterize_literals(parse_boolean_expression("a eq 'x'"))
    assert first == Comparison("eq", Path((NameStep("a"),)), Slot(0, LiteralKind.STRING))


@pytest.mark.parametrize(
    "one, other",
    [
        ("$filter=a eq 1&$top=5&$skip=10", "$filter=a  eq  42&$top=7&$skip=20"),
        ("$filter=contains(a,'x') or b/any(l:l/c gt 1)", "$filter=contains(a,'long') or b/any(l:l/c gt 100)"),
        ("$expand=Lines($filter=a eq 1;$top=2)", "$expand=Lines($filter=a eq 2;$top=3)"),
        ("$search=blue \"x y\"", "$search=red \"z\""),
        ("$apply=filter(a eq 1)/top(1)", "$apply=filter(a eq 2)/top(9)"),
        ("$compute=a mul 2 as b&@p=[1,{\"k\":2}]", "$compute=a mul 3 as b&@p=[4,{\"k\":5}]"),
        ("$filter=State eq Ns.State'New'", "$filter=State eq Ns.State'Void'"),
    ],
)  # fmt: skip
def test_same_shape(one: str, other: str) -> None:
    first, first_values = parameterize_literals(parse_query_options(one))
    second, second_values = parameterize_literals(parse_query_options(other))
    assert first == second
    assert hash(first) == hash(second)
    assert first_values != second_values
    assert len(first_values) == len(second_values)


@pytest.mark.parametrize(
    "one, other",
    [
        ("$filter=a eq 1", "$filter=a eq '1'"),
        ("$filter=a eq null", "$filter=a eq 1"),
        ("$filter=true", "$filter=false"),
        ("$filter=a in (1)", "$filter=a in (1,2)"),
        ("$filter=a eq Ns.A'x'", "$filter=a eq Ns.B'x'"),
        ("$filter=a eq 1", "$filter=b eq 1"),
        ("$expand=a($levels=1)", "$expand=a($levels=2)"),
        ("$count=true", "$count=false"),
        ("$top=1", "$skip=1"),
    ],
)
def test_other_shape(one: str, other: str) -> None:
    assert parameterize_literals(parse_query_options(one))[0] != parameterize_literals(parse_query_options(other))[0]


def test_paths_have_shapes_too() -> None:
    first, values = parameterize_literals(parse_resource_path("Set(1)/F(a='x')"))
    second, _ = parameterize_literals(parse_resource_path("Set(2)/F(a='y')"))
    assert first == second
    assert values == (1, "x")


def test_tuples_of_nodes_are_parameterized_together() -> None:
    filters = parse_boolean_expression("a eq 1"), parse_boolean_expression("b eq 2")
    _, values = parameterize_literals(filters)
    assert values == (1, 2)


def test_trees_without_literals_stay_the_same_object() -> None:
    tree = parse_query_options("$select=a,b&$orderby=c desc")
    assert parameterize_literals(tree) == (tree, ())
    assert parameterize_literals(tree)[0] is tree


def test_the_given_tree_is_not_changed() -> None:
    tree = parse_boolean_expression("a eq 1")
    parameterize_literals(tree)
    assert tree == parse_boolean_expression("a eq 1")
