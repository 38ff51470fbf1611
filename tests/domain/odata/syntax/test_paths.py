"""Resource paths and relative URIs."""

import pytest

from domain.syntax import ODataSyntaxError, parse_resource_path
from domain.syntax.ast import (
    Arguments,
    CrossjoinSegment,
    FilterSegment,
    Key,
    KeywordSegment,
    Literal,
    LiteralKind,
    LiteralSegment,
    NamedArgument,
    NameSegment,
    NameStep,
    ParameterAlias,
    Path,
    ResourcePath,
    Segment,
)

GUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


def guid(text: str = GUID) -> Literal:
    return Literal(LiteralKind.GUID, text)


def string(text: str) -> Literal:
    return Literal(LiteralKind.STRING, text)


def number(value: int) -> Literal:
    return Literal(LiteralKind.INTEGER, value)


PATHS: list[tuple[str, list[Segment]]] = [
    ("", []),
    ("Set", [NameSegment("Set")]),
    (f"Set({GUID})", [NameSegment("Set", (Key(guid()),))]),
    (f"Set({GUID.upper()})", [NameSegment("Set", (Key(guid()),))]),
    (f"Set('{GUID}')", [NameSegment("Set", (Key(string(GUID)),))]),
    (f"Set(%27{GUID}%27)", [NameSegment("Set", (Key(string(GUID)),))]),
    (f"Set(Id={GUID})", [NameSegment("Set", (Arguments((NamedArgument("Id", guid()),)),))]),
    (
        "Set(a=1,b='x')",
        [NameSegment("Set", (Arguments((NamedArgument("a", number(1)), NamedArgument("b", string("x")))),))],
    ),
    ("Set(@key)", [NameSegment("Set", (Key(ParameterAlias("key")),))]),
    ("Set(1)/Nav/Prop", [NameSegment("Set", (Key(number(1)),)), NameSegment("Nav"), NameSegment("Prop")]),
    ("Set/$count", [NameSegment("Set"), KeywordSegment("$count")]),
    (
        "Set(1)/Nav/$ref",
        [NameSegment("Set", (Key(number(1)),)), NameSegment("Nav"), KeywordSegment("$ref")],
    ),
    ("Set('a%2Fb')", [NameSegment("Set", (Key(string("a/b")),))]),
    ("Set('it''s')/a", [NameSegment("Set", (Key(string("it's")),)), NameSegment("a")]),
    ("Set/Erp.Type/Ns.Action", [NameSegment("Set"), NameSegment("Erp.Type"), NameSegment("Ns.Action")]),
    ("Set/42", [NameSegment("Set"), LiteralSegment("42")]),
    (f"Set/{GUID}/Name", [NameSegment("Set"), LiteralSegment(GUID), NameSegment("Name")]),
    ("Set(1)/Col/-1", [NameSegment("Set", (Key(number(1)),)), NameSegment("Col"), LiteralSegment("-1")]),
    ("Set/O%27Neil%2F2", [NameSegment("Set"), LiteralSegment("O'Neil/2")]),
    ("GetVersion()", [NameSegment("GetVersion", (Arguments(()),))]),
    (
        "Set(1)/Ns.F(a=@p,b=null)/$value",
        [
            NameSegment("Set", (Key(number(1)),)),
            NameSegment(
                "Ns.F",
                (
                    Arguments(
                        (
                            NamedArgument("a", ParameterAlias("p")),
                            NamedArgument("b", Literal(LiteralKind.NULL, None)),
                        )
                    ),
                ),
            ),
            KeywordSegment("$value"),
        ],
    ),
    ("F(a=1)(2)", [NameSegment("F", (Arguments((NamedArgument("a", number(1)),)), Key(number(2))))]),
    ("Set/$filter(@f)/$each", [NameSegment("Set"), FilterSegment(ParameterAlias("f")), KeywordSegment("$each")]),
    (
        "Set/$filter(a/b)/$count",
        [NameSegment("Set"), FilterSegment(Path((NameStep("a"), NameStep("b")))), KeywordSegment("$count")],
    ),
    ("Set/$each/Ns.Act", [NameSegment("Set"), KeywordSegment("$each"), NameSegment("Ns.Act")]),
    ("Set/$query", [NameSegment("Set"), KeywordSegment("$query")]),
    ("$crossjoin(A,B)", [CrossjoinSegment(("A", "B"))]),
    ("$crossjoin(A,B)/$query", [CrossjoinSegment(("A", "B")), KeywordSegment("$query")]),
    ("$all", [KeywordSegment("$all")]),
    ("$all/Erp.Type", [KeywordSegment("$all"), NameSegment("Erp.Type")]),
    ("$metadata", [KeywordSegment("$metadata")]),
    ("$batch", [KeywordSegment("$batch")]),
    ("%D0%A6%D0%B5%D0%BD%D0%B8", [NameSegment("Цени")]),
]


@pytest.mark.parametrize("text, segments", PATHS)
def test_path_is_read_so(text: str, segments: list[Segment]) -> None:
    assert parse_resource_path(text) == ResourcePath(tuple(segments))


def test_short_and_long_way_give_the_same() -> None:
    plain = parse_resource_path(f"A({GUID})/b/Ns.C")
    assert parse_resource_path(f"A%28{GUID}%29/b/Ns.C") == plain


def test_positions_count_in_the_decoded_path() -> None:
    path = parse_resource_path("%41bc/Def(1)")
    assert [segment.position for segment in path] == [0, 4]
    (key,) = path.segments[1].suffixes  # type: ignore[attr-defined]
    assert key.value.position == 8


@pytest.mark.parametrize(
    "text, position, message",
    [
        ("/Set", 0, "empty"),
        ("Set/", 4, "empty"),
        ("Set//a", 4, "empty"),
        ("Set('a/b')", 6, "%2F"),
        ("Set(1", 5, "found the end"),
        ("Set(1)x", 6, "'/'"),
        ("Set(1)(2)", 6, "'/'"),
        ("Set(a)", 4, "a literal"),
        ("Set(null)", 4, "key value"),
        ("Set(1 eq 1)", 4, "a literal"),
        ("Set(a=b)", 6, "a literal"),
        ("Set(1)/-1", 7, "a name"),
        ("Set/$coun", 4, "$count"),
        ("Set/$count/a", 11, "Nothing can follow $count"),
        ("Set/$value/$ref", 11, "Nothing can follow $value"),
        ("Set/$all", 4, "'$all'"),
        ("$count", 0, "entity set"),
        ("Ns.Set", 0, "without namespace"),
        ("Set/$filter(a", 13, "')'"),
        ("Set/$filter(a))", 14, "'/'"),
        ("Set/$each/42", 10, "operation"),
        ("Set/$crossjoin(A)", 4, "beginning"),
        ("$crossjoin(A)/B", 14, "$query"),
        ("$all/A/B", 7, "end of the path"),
        ("Set/a(b", 4, "a literal"),
        ("Set/%", 4, "hexadecimal"),
        ("/".join(["a"] * 1001), 0, "More than 1000"),
    ],
)
def test_wrong_paths_are_refused_where_they_are_wrong(text: str, position: int, message: str) -> None:
    with pytest.raises(ODataSyntaxError) as caught:
        parse_resource_path(text)
    assert message in str(caught.value)
    if message not in ("hexadecimal", "a literal"):
        assert caught.value.position == position, caught.value
