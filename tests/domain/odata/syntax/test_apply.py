"""$apply: text → transformations."""

import pytest

from domain.syntax import ODataSyntaxError, parse_query_options
from domain.syntax.ast import (
    AggregateFrom,
    AggregateItem,
    AggregateTransformation,
    CountStep,
    GroupByTransformation,
    GroupingProperty,
    HierarchyTransformation,
    NameStep,
    Path,
    Rollup,
)

from .rules import parse_apply
from .unparse import sequence


def path(*names: str) -> Path:
    return Path(tuple(NameStep(name) for name in names))


READINGS = [
    "identity",
    "filter((a eq 1))/identity",
    "search((x AND y))",
    "groupby((a,b/c))",
    "groupby((a),aggregate(b with sum as c))",
    "groupby((a),groupby((b),aggregate($count as n))/aggregate(n with max as m))",
    "groupby((rollup(a,b/c),d))",
    "groupby((rollup(Hierarchy)))",
    "groupby((rolluprecursive($root/Orgs,H,Id,filter(a))))",
    "groupby((yearmonth(Date),Customer))",
    "groupby((yearmonth(Date) as Month))",
    "aggregate($count as n)",
    "aggregate(Lines/$count as n,Forecast,Forecast as f)",
    "aggregate((a mul b) with average as c,a with Ns.Median as d)",
    "aggregate(a with sum from b,c with average from d with max as e)",
    "aggregate(Customer/Erp.Company with countdistinct as c)",
    "aggregate(Forecast from a with max from b as c)",
    "compute((a mul b) as c,d as e)",
    "concat(identity,filter(a),groupby((b)))",
    "orderby(a,b desc)/skip(5)/top(10)",
    "topcount(5,Amount)/topsum(1,a)/toppercent(2,b)/bottomcount(1,a)/bottomsum(2,b)/bottompercent(50,c)",
    "join(Lines as Line,aggregate($count as n))",
    "outerjoin(Lines as Line)",
    "nest(groupby((a)) as b,identity as c)",
    "addnested(Lines/Product,filter(a) as b)",
    "ancestors($root/Orgs,H,Id,filter(a))",
    "descendants($root/Orgs,H,Id,filter(a)/top(1),2,keep start)",
    "traverse($root/Orgs,H,Id,preorder)",
    "traverse($root/Orgs,H,Id,postorder,filter(a),b desc,c)",
    "traverse($root/Orgs,H,Id,preorder,b)",
    "Ns.Sample(a=1,b='x')",
    "groupby((Product))/expandgroup(Product($select=Name;$expand=Group))",
    "expandgroup(Product,Customer($select=Name))",
]


@pytest.mark.parametrize("text", READINGS)
def test_transformations_are_read(text: str) -> None:
    assert sequence(parse_apply(text)) == text


@pytest.mark.parametrize(
    "text, same",
    [
        ("groupby( ( a , b ) , aggregate( c with sum as d ) )", "groupby((a,b),aggregate(c with sum as d))"),
        ("expandgroup=Product($select=Name)", "expandgroup(Product($select=Name))"),
        ("expandgroup=Product($select=Name),Customer", "expandgroup(Product($select=Name),Customer)"),
        ("concat(expandgroup=Product,identity)", "concat(expandgroup(Product),identity)"),
    ],
)
def test_spellings_of_the_same(text: str, same: str) -> None:
    assert parse_apply(text) == parse_apply(same)


def test_groups_are_expanded_by_an_option_of_their_own() -> None:
    grouped = "$apply=groupby((Product),aggregate($count as n))"
    for option in (
        "expandgroup=Product($select=Id;$expand=Group),Customer",
        "$ExpandGroup=Product($select=Id;$expand=Group),Customer",
    ):
        beside = parse_query_options(f"{option}&{grouped}")
        assert beside == parse_query_options(f"{grouped}/expandgroup=Product($select=Id;$expand=Group),Customer")
    for wrong in (
        "expandgroup=Product",
        f"{grouped}&expandgroup=",
        f"{grouped}&expandgroup=Product&expandgroup=Product",
    ):
        with pytest.raises(ODataSyntaxError):
            parse_query_options(wrong)


def test_groupby_with_aggregate() -> None:
    assert parse_apply("groupby((Customer/Name,rollup(a,b)),aggregate($count as n,Amount with sum as s))") == (
        GroupByTransformation(
            (GroupingProperty(path("Customer", "Name")), Rollup((path("a"), path("b")))),
            (
                AggregateTransformation(
                    (
                        AggregateItem(Path((CountStep(),)), alias="n"),
                        AggregateItem(path("Amount"), "sum", alias="s"),
                    )
                ),
            ),
        ),
    )


def test_aggregate_from() -> None:
    (transformation,) = parse_apply("aggregate(a with sum from b with average as c)")
    assert transformation == AggregateTransformation(
        (AggregateItem(path("a"), "sum", (AggregateFrom((path("b"),), "average"),), "c"),)
    )


def test_hierarchy_options() -> None:
    (transformation,) = parse_apply("ancestors($root/Orgs,H,Id,identity,1,keep start)")
    assert isinstance(transformation, HierarchyTransformation)
    assert (transformation.name, transformation.distance, transformation.keep_start) == ("ancestors", 1, True)


@pytest.mark.parametrize(
    "text, position",
    [
        ("", 0),
        ("Filter(a)", 0),
        ("filter(a)/", 10),
        ("groupby(a)", 8),
        ("groupby((a)", 11),
        ("groupby((a eq 1))", 9),
        ("groupby((rollup(a/b)))", 19),
        ("aggregate()", 10),
        ("aggregate(a with sum)", 20),
        ("aggregate(a with median as b)", 17),
        ("aggregate(a mul b)", 17),
        ("aggregate($count with sum as x)", 10),
        ("concat(identity)", 15),
        ("top(-1)", 4),
        ("ancestors(Orgs,H,Id,identity)", 10),
        ("ancestors($root/Orgs,H,Id,aggregate($count as n))", 26),
        ("traverse($root/Orgs,H,Id,inorder)", 25),
        ("join(a/b/c as d)", 5),
        ("nest(identity)", 13),
        ("Ns.Sample(1)", 9),
    ],
)
def test_wrong_transformations_are_refused_where_they_are_wrong(text: str, position: int) -> None:
    with pytest.raises(ODataSyntaxError) as caught:
        parse_apply(text)
    assert caught.value.position == position, caught.value
