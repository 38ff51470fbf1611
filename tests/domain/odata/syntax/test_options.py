"""Query options: values of single options, and whole query strings."""

from urllib.parse import quote

import pytest

from domain.syntax import (
    NotSupportedConstruct,
    ODataSyntaxError,
    parse_orderby,
    parse_query_options,
    parse_search,
    parse_select,
)
from domain.syntax.ast import (
    NO_OPTIONS,
    AliasValue,
    AllOperationsStep,
    ExpandItem,
    ExpandKind,
    Literal,
    LiteralKind,
    NameStep,
    OrderItem,
    Path,
    QueryOptions,
    SearchLogical,
    SearchNot,
    SearchTerm,
    SelectItem,
    StarStep,
)

from .rules import parse_compute, parse_expand
from .unparse import unparse


def path(*names: str) -> Path:
    return Path(tuple(NameStep(name) for name in names))


def term(text: str) -> SearchTerm:
    return SearchTerm(Literal(LiteralKind.STRING, text))


# --- $select


@pytest.mark.parametrize(
    "text, reading",
    [
        ("Name", "Name"),
        ("default,Name", "default,Name"),
        (" default , Name ", "default,Name"),
        ("*", "*"),
        ("Ns.Sub.*", "Ns.Sub.*"),
        ("Address/City,Address/Ns.Type/Zip", "Address/City,Address/Ns.Type/Zip"),
        ("Ns.Type/Name", "Ns.Type/Name"),
        ("Ns.Action,Ns.Type/Ns.Action", "Ns.Action,Ns.Type/Ns.Action"),
        ("Ns.Function(a,b)", "Ns.Function(a,b)"),
        ("Phones($filter=startswith($this,'0');$top=2;count=true)",
         "Phones($filter=startswith($this,'0');$top=2;$count=true)"),
        ("Address($select=City;@p=1)", "Address(@p=1;$select=City)"),
        ("@Ns.Term#q", "@Ns.Term#q"),
    ],
)  # fmt: skip
def test_select(text: str, reading: str) -> None:
    assert unparse(parse_select(text)) == reading


def test_select_tells_parameter_names_from_options() -> None:
    assert parse_select("F(a)") == (SelectItem((NameStep("F"),), parameters=("a",)),)
    assert parse_select("Ns.*") == (SelectItem((AllOperationsStep("Ns"),)),)


# --- $expand


@pytest.mark.parametrize(
    "text, reading",
    [
        ("Lines", "Lines"),
        ("Lines,Customer", "Lines,Customer"),
        ("Lines ( $select = a)".replace(" ", ""), "Lines($select=a)"),
        ("Lines($select=A,B;$expand=Product($select=Name);$orderby=LineNo desc)",
         "Lines($select=A,B;$expand=Product($select=Name);$orderby=LineNo desc)"),
        ("Lines( filter=a eq 1 ; TOP=2 ; skip=1 ; count=TRUE )", "Lines($filter=(a eq 1);$top=2;$skip=1;$count=true)"),
        ("Parent($levels=max)", "Parent($levels=max)"),
        ("Parent($levels=3;$select=Id)", "Parent($select=Id;$levels=3)"),
        ("*", "*"),
        ("*/$ref,*($levels=2)", "*/$ref,*($levels=2)"),
        ("Lines/$ref", "Lines/$ref"),
        ("Lines/$ref($filter=a;$top=1)", "Lines/$ref($filter=a;$top=1)"),
        ("Lines/$count", "Lines/$count"),
        ("Lines/$count($search=x OR y)", "Lines/$count($search=(x OR y))"),
        ("Party/Erp.Company", "Party/Erp.Company"),
        ("Erp.Company/Owner($select=Name)", "Erp.Company/Owner($select=Name)"),
        ("Address/Country", "Address/Country"),
        ("Address/*", "Address/*"),
        ("Lines($compute=a mul b as c;$search=\"x y\")", "Lines($search=\"x y\";$compute=(a mul b) as c)"),
        ("Lines($apply=groupby((a)))", "Lines($apply=groupby((a)))"),
        ("Lines($filter=a eq @p;@p=1)", "Lines(@p=1;$filter=(a eq @p))"),
    ],
)  # fmt: skip
def test_expand(text: str, reading: str) -> None:
    assert unparse(parse_expand(text)) == reading


def test_expand_of_references_and_everything() -> None:
    assert parse_expand("*/$ref,Lines/$count") == (
        ExpandItem((StarStep(),), ExpandKind.REF),
        ExpandItem((NameStep("Lines"),), ExpandKind.COUNT),
    )


def test_expand_of_a_media_stream_is_not_supported() -> None:
    with pytest.raises(NotSupportedConstruct, match="Media streams"):
        parse_expand("Lines,$value")


# --- the others


def test_orderby() -> None:
    assert parse_orderby("Name,Customer/Name DESC, length(x) asc") == (
        OrderItem(path("Name")),
        OrderItem(path("Customer", "Name"), is_descending=True),
        *parse_orderby("length(x)"),
    )


def test_orderby_by_properties_named_like_directions() -> None:
    assert parse_orderby("asc,desc desc") == (OrderItem(path("asc")), OrderItem(path("desc"), is_descending=True))


def test_compute() -> None:
    assert (
        unparse(parse_compute("Price mul Qty as Total,year(Date) AS Year"))
        == "(Price mul Qty) as Total,year(Date) as Year"
    )


@pytest.mark.parametrize(
    "text, tree",
    [
        ("blue", term("blue")),
        ('"mountain bike"', term("mountain bike")),
        ("'mountain bike'", term("mountain bike")),
        ("a b", SearchLogical("and", (term("a"), term("b")))),
        ("a AND b", SearchLogical("and", (term("a"), term("b")))),
        ("a OR b c", SearchLogical("or", (term("a"), SearchLogical("and", (term("b"), term("c")))))),
        ("NOT a OR b", SearchLogical("or", (SearchNot(term("a")), term("b")))),
        ("(a OR b) c", SearchLogical("and", (SearchLogical("or", (term("a"), term("b"))), term("c")))),
        ("NOT", term("NOT")),
        ("AND OR", SearchLogical("and", (term("AND"), term("OR")))),
        ("a and b", SearchLogical("and", (term("a"), term("and"), term("b")))),
        ("O'Neil №5,x", SearchLogical("and", (term("O'Neil"), term("№5,x")))),
    ],
)
def test_search(text: str, tree: object) -> None:
    assert parse_search(text) == tree


@pytest.mark.parametrize("text", ["", " ", "(a", "a)", '"a', '""', "a;b", '"a""b"', "()"])
def test_search_refuses(text: str) -> None:
    with pytest.raises(ODataSyntaxError):
        parse_search(text)


@pytest.mark.parametrize(
    "raw",
    [
        "$search=a%3Bb", "search=a%3bb", '$search="a%3Bb"', "$search='a%3Bb'", "$search=(a%3Bb)",
        "$expand=Lines($search=a%3Bb;$top=1)", "$expand=Lines($top=1;search=(a%3Bb))",
        "$expand=Lines($expand=Product($search=a%3Bb))", "$expand=Lines/$count($search=a%3Bb)", "$apply=search(a%3Bb)",
    ],
)  # fmt: skip
def test_an_encoded_semicolon_belongs_to_the_word_that_is_searched(raw: str) -> None:
    assert '"a;b"' in repr(parse_query_options(raw)).replace("'", '"')


@pytest.mark.parametrize(
    "raw", ["$search=a;b", "$expand=Lines($search=a;b)", "$expand=Lines($filter=a eq 1%3B$search=a;b)"]
)
def test_a_plain_semicolon_ends_a_search(raw: str) -> None:
    with pytest.raises(ODataSyntaxError):
        parse_query_options(raw)


def test_an_encoded_semicolon_elsewhere_is_one() -> None:
    encoded = parse_query_options("$expand=Lines($filter=Url eq 'x?search=a%3Bb'%3B$top=1)")
    assert encoded == parse_query_options("$expand=Lines($filter=Url eq 'x?search=a;b';$top=1)")


def value_of(option: str, text: str) -> object:
    """The value of one option, as a request gives it."""
    return getattr(parse_query_options(f"${option}={quote(text)}"), option)


@pytest.mark.parametrize(
    "option, text, value",
    [
        ("count", "True", True), ("index", "-1", -1),
        ("format", "application/json;odata.metadata=full", "application/json;odata.metadata=full"),
        ("schemaversion", "*", "*"), ("skiptoken", "a=b/c", "a=b/c"), ("deltatoken", "x", "x"),
    ],
)  # fmt: skip
def test_scalars(option: str, text: str, value: object) -> None:
    assert value_of(option, text) == value


@pytest.mark.parametrize("option, text, number", [("top", "10", 10), ("skip", "0", 0)])
def test_numbers_of_rows(option: str, text: str, number: int) -> None:
    literal = value_of(option, text)
    assert isinstance(literal, Literal)
    assert literal.value == number


@pytest.mark.parametrize("text, levels", [("max", "max"), ("2", 2)])
def test_levels(text: str, levels: object) -> None:
    (item,) = parse_expand(f"Lines($levels={text})")
    assert item.options.levels == levels


@pytest.mark.parametrize(
    "option, text",
    [
        ("top", "-1"), ("top", "1.5"), ("top", ""), ("skip", "x"), ("count", "1"), ("index", "a"), ("format", ""),
        ("format", "yaml"), ("schemaversion", "a b"), ("skiptoken", ""),
    ],
)  # fmt: skip
def test_wrong_values_of_scalars_are_refused(option: str, text: str) -> None:
    with pytest.raises(ODataSyntaxError):
        value_of(option, text)


@pytest.mark.parametrize(
    "parse, text",
    [
        (parse_expand, "Lines($levels=0)"), (parse_expand, "Lines($levels=-1)"),
        (parse_select, ""), (parse_select, "a,"),
        (parse_select, "a/*"), (parse_select, "Ns.A/Ns.B/c"), (parse_select, "a b"), (parse_select, "a()"),
        (parse_select, "a($expand=b)"), (parse_expand, ""), (parse_expand, "Ns.Type"), (parse_expand, "Lines()"),
        (parse_expand, "Lines($top=1,$skip=2)"), (parse_expand, "Lines($top=1;$top=2)"),
        (parse_expand, "Lines/$count($top=1)"), (parse_expand, "*($top=1)"), (parse_expand, "*/$count"),
        (parse_expand, "Lines($format=json)"), (parse_orderby, ""), (parse_orderby, "a ascending"),
        (parse_compute, "a"), (parse_compute, "a as 1"),
    ],
)  # fmt: skip
def test_wrong_values_are_refused(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ODataSyntaxError):
        parse(text)


# --- query strings


def test_query_string_is_split_before_it_is_decoded() -> None:
    options = parse_query_options("$filter=Name%20eq%20'a%26b%3D''c'&%24top=5")
    assert unparse(options.filter) == "(Name eq 'a&b=''c')"
    assert options.top == Literal(LiteralKind.INTEGER, 5)


def test_names_need_no_dollar_sign_and_have_any_case() -> None:
    assert parse_query_options("FILTER=a&$OrderBy=b&select=c") == parse_query_options("$filter=a&$orderby=b&$select=c")


def test_everything_at_once() -> None:
    options = parse_query_options(
        "$filter=a eq @p&$select=a&$expand=b&$orderby=c&$compute=d as e&$search=f&$apply=identity&$top=1&$skip=2"
        "&$count=true&$format=json&$skiptoken=t&$deltatoken=u&$schemaversion=*&$index=-1&$id=Set(1)&@p=[1]&culture=bg&x"
    )
    assert options.count is True
    assert (options.format, options.skiptoken, options.deltatoken) == ("json", "t", "u")
    assert (options.schemaversion, options.index, options.id) == ("*", -1, "Set(1)")
    assert options.aliases == (AliasValue("p", parse_query_options("@p=[1]").aliases[0].value),)
    assert options.custom == (("culture", "bg"), ("x", ""))
    assert all(
        getattr(options, name) for name in ("filter", "select", "expand", "orderby", "compute", "search", "apply")
    )


@pytest.mark.parametrize("text", ["", "&", "&&"])
def test_no_options(text: str) -> None:
    assert parse_query_options(text) == NO_OPTIONS == QueryOptions()


def test_custom_options_may_repeat() -> None:
    assert parse_query_options("a=1&a=2").custom == (("a", "1"), ("a", "2"))


def test_alias_holds_json_or_an_expression() -> None:
    options = parse_query_options('@a={"k":[1,"x",{"n":null}]}&@b=Price mul 2')
    assert [alias.name for alias in options.aliases] == ["a", "b"]
    assert unparse(options.aliases[0].value) == '{"k":[1,"x",{"n":null}]}'
    assert unparse(options.aliases[1].value) == "(Price mul 2)"


def test_plus_is_a_sign_unless_asked_otherwise() -> None:
    assert parse_query_options("$filter=a%20eq%20+1").filter == parse_query_options("$filter=a eq 1").filter
    assert parse_query_options("$filter=a+eq+1", plus_is_space=True) == parse_query_options("$filter=a eq 1")
    with pytest.raises(ODataSyntaxError):
        parse_query_options("$filter=a+eq+1")


@pytest.mark.parametrize(
    "text, message",
    [
        ("$top=1&$top=2", "$top is given twice"),
        ("$top=1&TOP=2", "$top is given twice"),
        ("@p=1&@p=2", "@p is given twice"),
        ("$filtr=a", "Did you mean $filter?"),
        ("$levels=1", "inside $expand"),
        ("@1=2", "not the name of a parameter alias"),
        ("=1", "has no name"),
        ("$filter=%zz", "two hexadecimal digits"),
        ("$filter=%ff", "not UTF-8"),
        ("$filter='%00'", "NUL"),
        ("&".join(["a=1"] * 1001), "More than 1000 query options"),
    ],
)
def test_wrong_query_strings_say_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ODataSyntaxError) as caught:
        parse_query_options(text)
    assert message in str(caught.value)


def test_errors_name_their_option() -> None:
    with pytest.raises(ODataSyntaxError) as caught:
        parse_query_options("$top=1&$orderby=Name descending")
    assert caught.value.option == "$orderby"
    assert str(caught.value).startswith("$orderby: ")
