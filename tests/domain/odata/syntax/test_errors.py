"""What is wrong is said with its position, what was found and what was expected."""

import pytest

from domain.odata.message.failures import known_error
from domain.syntax import NotSupportedConstruct, ODataSyntaxError, ODataUrlError, parse_boolean_expression

from .rules import parse_common_expression


@pytest.mark.parametrize(
    "text, position, message",
    [
        ("", 0, "Expected a property, a literal, a function or '(', found the end of the text."),
        ("Name eq", 7, "Expected white space and an operand after 'eq', found the end of the text."),
        ("Name eq ", 8, "Expected a property, a literal, a function or '(', found the end of the text."),
        ("Name eq )", 8, "found ')'."),
        ("Name eq 'x", 8, "The string has no closing single quote."),
        ("Name eq 'x' and", 15, "Expected white space and an operand after 'and'"),
        ("Name equals 'x'", 5, "Expected an operator such as eq or and or the end of the text, found 'equals'."),
        ("Name eq 1 2", 10, "or the end of the text, found '2'."),
        ("(Name eq 1", 10, "Expected an operator such as eq or and or ')', found the end of the text."),
        ("Name eq 1)", 9, "or the end of the text, found ')'."),
        ("1 eq 1and 2 eq 2", 6, "found 'and'"),
        ("a eq#1", 4, "Expected white space and an operand after 'eq', found '#'."),
        ("contain(Name,'x')", 0, "There is no function 'contain' with such arguments. Did you mean contains?"),
        ("substringof('x',Name)", 0, "Did you mean substring?"),
        ("contains(Name)", 0, "The function contains takes 2 arguments, found 1."),
        ("substring(Name)", 0, "The function substring takes 2 or 3 arguments, found 1."),
        ("length()", 0, "The function length takes 1 argument, found 0."),
        ("contains(Name 'x')", 14, "Expected an operator such as eq or and, ',' or ')'"),
        ("isdefined(1)", 10, "Expected a path"),
        ("Id eq guid'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", 6, "have neither prefix nor quotes"),
        ("Date eq datetime'2024-01-01'", 8, "have neither prefix nor quotes"),
        ("Date eq 2024-02-30", 8, "'2024-02-30' is not a date of the calendar, such as 2026-01-31."),
        ("Date eq 2024-01-01T00:00:00+2", 8, "Z or a distance from UTC"),
        ("Lines/any(l)", 11, "Expected ':'"),
        ("Lines/all()", 10, "the name of a lambda variable"),
        ("Lines/any(l:l/a eq 1", 20, "')'"),
        ("Lines/", 6, "Expected a property, any, all, $count or $filter"),
        ("Lines/$cnt", 6, "found '$cnt'"),
        ("Lines/$count/x", 12, "or the end of the text"),
        ("Lines/$count($top=1)", 13, "Expected $filter= or $search="),
        ("Lines/$count($filter=a;$filter=b)", 23, "given twice"),
        ("a in 1,2", 6, "or the end of the text, found ','."),
        ("a in (1,b)", 8, "Expected a literal, found 'b'."),
        ("a in (1", 7, "',' or ')'"),
        ("a has 1", 6, "an enumeration member"),
        ("a has b", 6, "an enumeration member"),
        ("$all eq 1", 0, "$it, $this"),
        ("$root eq 1", 5, "'/'"),
        ("@ eq 1", 1, "the name of a parameter alias"),
        ('Name eq "x"', 8, "found '\"'"),
        ('["x]', 1, "no closing double quote"),
        ('{"a" 1}', 5, "':'"),
        ('{a:1}', 1, "a name in double quotes"),
        (r'["\x"]', 1, "an escape that JSON does not know"),
        (r'["\ud800"]', 1, "an escape that JSON does not know"),
        ("case(a)", 6, "':'"),
        ("case()", 5, "a property"),
        ("cast(a,)", 7, "the name of a type"),
        ("cast(1)", 6, "','"),
        ("isof(a b)", 7, "','"),
        ("F(a=1,2)", 6, "a name and '='"),
        ("Ns.F(1,2)", 0, "no function 'Ns.F'"),
        ("a²b eq 1", 0, "A name consists of"),
        ("x" * 129, 0, "at most 128"),
        ("a\neq 1", 1, "found '\n'"),
    ],
)  # fmt: skip
def test_error_has_position_and_message(text: str, position: int, message: str) -> None:
    with pytest.raises(ODataSyntaxError) as caught:
        parse_common_expression(text)
    assert message in caught.value.message
    assert caught.value.position == position, caught.value
    assert caught.value.text == text


def test_error_is_a_sentence_with_an_excerpt() -> None:
    with pytest.raises(ODataSyntaxError) as caught:
        parse_boolean_expression("Name eq )")
    assert str(caught.value) == (
        "$filter: Expected a property, a literal, a function or '(', found ')'. (position 8 in 'Name eq )')"
    )
    assert caught.value.expected == ("a property", "a literal", "a function", "'('")


def test_messages_stay_short_however_long_the_text() -> None:
    with pytest.raises(ODataSyntaxError) as caught:
        parse_boolean_expression("a eq 1 or " * 1000 + "b eq )")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["geo.distance(a,b) lt 5", "GEO.length(a) gt 1", "geo.intersects(a,b)"])
def test_spatial_functions_are_not_supported(text: str) -> None:
    with pytest.raises(NotSupportedConstruct, match="Spatial functions are not supported"):
        parse_boolean_expression(text)


def test_wrong_text_is_wrong_before_it_is_not_supported() -> None:
    with pytest.raises(ODataSyntaxError):
        parse_boolean_expression("geo.length(a) gt )")


def test_both_errors_have_one_base() -> None:
    assert issubclass(ODataSyntaxError, ODataUrlError)
    assert issubclass(NotSupportedConstruct, ODataUrlError)
    assert not issubclass(NotSupportedConstruct, ODataSyntaxError)


def test_an_answer_names_the_option_once() -> None:
    with pytest.raises(ODataSyntaxError) as caught:
        parse_boolean_expression("Name eq )")
    told = str(known_error(caught.value))
    assert told.startswith("The query option $filter cannot be read: Expected a property")
    assert told.count("$filter") == 1
