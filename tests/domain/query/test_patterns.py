"""matchesPattern: which patterns are taken, what they match on either database, and that none of them runs away.

What a pattern means is asked of an engine of ECMAScript, which is the language that OData names (5.1.1.5.9), and of
Python's `re` where that has the same words.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import orjson
import pytest
import quickjs
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from pytest_django import Settings

from domain.database import time_limit
from domain.entities.general_currencies import Currency
from domain.model.registry import repositories
from domain.query import Representation, read_collection
from domain.query.api import cache
from domain.query.base.regex import check_text, matches
from domain.syntax import parse_query_options
from foundation import errors
from identity.context import CallContext
from tests.domain.conftest import api, fresh_process, world
from tests.domain.query.conftest import english
from tests.support.api import Api, error_of
from tests.support.measuring import slowness

__all__ = ["api", "fresh_process", "world"]

# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern, why",
    [
        ("(a+)+$", "repeats what itself repeats"),
        ("(ab|c)*", "repeats what itself repeats or branches"),
        ("a*b*c*d*e", "more than 3 repetitions"),
        ("a{0,20}" * 6 + "b", "share a text"),
        ("a?" * 30 + "b", "share a text"),
        ("(a|aa|b)" * 12 + "b", "share a text"),
        ("x" * 501, "longer than 500 characters"),
        ("a{255}" * 20, "longer than 5000 characters"),
        (r"\ba" * 11, "more than 10 word edges"),
        (r"\p{L}{255}" * 3, "needs more than 8 megabytes"),
    ],
)
def test_patterns_that_could_run_away_are_refused(pattern: str, why: str) -> None:
    with pytest.raises(errors.BadRequest, match=re.escape(why)):
        check_text(pattern, 1)


@pytest.mark.parametrize(
    "pattern, position, what",
    [
        ("a(?=b)", 1, "a look ahead"),
        ("a(?!b)", 1, "a look ahead"),
        ("(?<=a)b", 0, "a look behind"),
        ("(?<!a)b", 0, "a look behind"),
        (r"(a)\1", 3, "a reference to a group"),
        (r"(?<n>a)\k<n>", 7, "a reference to a group"),
        ("xa++", 2, "a possessive repetition"),
        ("a{2}+", 1, "a possessive repetition"),
        ("(?>a)", 0, "an atomic group"),
        ("(?#a)", 0, "a comment"),
        ("(?P<n>a)", 0, "a group with a name as in Python, instead of (?<name>…)"),
        ("(?P=n)", 0, "a group with a name as in Python, instead of (?<name>…)"),
        ("(?(1)a)", 0, "the group (?("),
        ("(?|a)", 0, "the group (?|"),
        ("(?<1>a)", 0, "the group (?<"),
        ("(?m)a", 0, "the option m"),
        ("(?im:a)", 0, "the option m"),
        ("a(?i)b", 1, "an option that is not at the beginning, instead of (?i:…)"),
        ("a{,5}", 1, "a repetition without a lower bound"),
        ("a{256}", 1, "more than 255 repetitions"),
        ("a{1,256}", 1, "more than 255 repetitions"),
        ("x[[:alpha:]]", 2, "the class [:alpha:]"),
        ("[[.a.]]", 1, "the class [.a.]"),
        ("[b[=a=]]", 2, "the class [=a=]"),
        (r"[a-\d]", 1, "a range from or to a class"),
        (r"[\d-z]", 1, "a range from or to a class"),
        *((f"a\\{letter}", 1, f"the escape \\{letter}") for letter in "AZzmMyYQEeahXRG"),
        (r"[\A]", 1, r"the escape \A"),
        (r"\x4", 0, r"the escape \x"),
        (r"\u004", 0, r"the escape \u"),
        (r"\c1", 0, r"the escape \c"),
        (r"\00", 0, r"the escape \0"),
        (r"\p{Cyrillic}", 0, "the property Cyrillic"),
        (r"\pL", 0, r"the escape \p"),
        (r"\ud83d", 0, "half of a character"),
        (r"\ude42", 0, "half of a character"),
        ("(" * 51 + "a" + ")" * 51, 50, "groups nested deeper than 50 levels"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named_with_its_position(pattern: str, position: int, what: str) -> None:
    with pytest.raises(errors.BadRequest) as refused:
        check_text(pattern, 7)
    expected = f"the pattern has what is not supported at its position {position}: {what}"
    assert refused.value.parameters == ("7", expected)


@pytest.mark.parametrize(
    "pattern, position, why",
    [
        ("a(b", 1, "a group is not closed"),
        ("a)b", 1, "a parenthesis is closed that was not opened"),
        ("a[b", 1, "a set of characters is not closed"),
        ("[b-", 0, "a set of characters is not closed"),
        ("*a", 0, "there is nothing to repeat"),
        ("a**", 2, "there is nothing to repeat"),
        ("a{2}{3}", 4, "there is nothing to repeat"),
        ("^*", 1, "there is nothing to repeat"),
        (r"\b+", 2, "there is nothing to repeat"),
        ("(|{2})", 2, "there is nothing to repeat"),
        ("a{3,2}", 1, "the bounds are out of order"),
        ("[z-a]", 1, "the range is out of order"),
        ("a\\", 1, "the escape is not complete"),
        ("[\\", 1, "the escape is not complete"),
        (r"\u{110000}", 0, "there is no such character"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_position(pattern: str, position: int, why: str) -> None:
    with pytest.raises(errors.BadRequest) as refused:
        check_text(pattern, 7)
    expected = f"the pattern cannot be read from its position {position} on: {why}"
    assert refused.value.parameters == ("7", expected)


def _refusal(pattern: str) -> str:
    """Why the pattern is refused; nothing where it is taken."""
    try:
        check_text(pattern, 1)
    except errors.BadRequest as refused:
        return refused.message
    return ""


@given(pattern=st.text(alphabet="ab(?:)[^-]{1,3}*+|\\dwpuxLikP<>=!#.$", max_size=20))
def test_any_text_is_a_pattern_or_a_bad_request(pattern: str) -> None:
    if _refusal(pattern) == "":
        assert matches("ab", pattern) in (True, False)


# --- what a pattern means -----------------------------------------------------------------------------------------

_quietly = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
_javascript = quickjs.Context()
_test: Any = _javascript.eval("(pattern, flags, text) => new RegExp(pattern, flags).test(text)")
_ALPHABET = "aAbBzZ019_ -.жЖéßẞſσςΣİıiIkK\N{KELVIN SIGN}🙂\t\n\r\v\x0b\x85\xa0\u2028\ufeff'%&\\]["

_TEXTS = st.text(alphabet=_ALPHABET, max_size=8)
_PLACES = st.sampled_from(["^", "$", r"\b", r"\B"])
_ESCAPES = st.sampled_from(
    [*"dDwWsStnrvf0", "x41", "u0416", "u{1f642}", r"ud83d\ude42", "cJ", "p{Lu}", "P{L}", "p{N}"]
).map("\\{}".format)


def _written(character: str) -> str:
    return f"\\{character}" if character in "^$\\.*+?()[]{}|/" else character


def _written_in_set(character: str) -> str:
    if character == "-":
        return r"\x2d"  # QuickJS does not take `\-` together with the flag u
    return f"\\{character}" if character in "\\]^" else character


_CHARACTERS = st.sampled_from(_ALPHABET)
_RANGES = st.tuples(_CHARACTERS, _CHARACTERS).map(lambda pair: "-".join(map(_written_in_set, sorted(pair))))
_SETS = st.builds(
    lambda negated, members: f"[{'^' if negated else ''}{''.join(members)}]",
    st.booleans(),
    st.lists(st.one_of(_CHARACTERS.map(_written_in_set), _RANGES, _ESCAPES), max_size=3),
)
_ATOMS = st.one_of(_CHARACTERS.map(_written), st.just("."), _ESCAPES, _SETS)
_REPETITIONS = st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{2,}", "{0}", "{0,3}?"])
# With a character in each: QuickJS never ends with `()+?`.
_GROUPS = st.builds(lambda first, rest: f"({first}{''.join(rest)})", _ATOMS, st.lists(_ATOMS | _PLACES, max_size=2))
_REPEATED = st.builds(str.__add__, _ATOMS | _GROUPS, _REPETITIONS)
_SEQUENCES = st.lists(_REPEATED | _PLACES, max_size=4).map("".join)
_PATTERNS = st.recursive(
    _SEQUENCES,
    lambda inner: st.one_of(
        st.builds("{}|{}".format, inner, inner),
        st.builds("{}(?:{}){}".format, inner, inner, inner),
    ),
    max_leaves=3,
)

Found = Callable[[str, str], bool]


@pytest.fixture
def found(db: None, context: CallContext) -> Found:
    """found(text, pattern) → whether the database at hand finds the pattern in the text."""
    Currency.objects.create(currency_sign="EUR", name=english("Euro"))
    repository, _ = repositories.for_set("General_Currencies_Currencies") or pytest.fail("no such set")

    def ask(text: str, pattern: str) -> bool:
        literals = (quote("'{}'".format(each.replace("'", "''"))) for each in (text, pattern))
        options = "$top=1&$select=Id&$filter=matchesPattern({},@p)&@p={}".format(*literals)
        body = read_collection(repository, parse_query_options(options), context, Representation()).body
        return bool(orjson.loads(body)["value"])

    return ask


def _taken(pattern: str) -> str:
    """The pattern, unless it could run away; it has nothing else to be refused for."""
    reason = _refusal(pattern)
    assert "not supported" not in reason
    assert "cannot be read" not in reason
    assume(reason == "")
    return pattern


@_quietly
@given(pattern=_PATTERNS, text=_TEXTS)
@example(pattern=r"\bя", text="яя")
@example(pattern="a$", text="a\n")
@example(pattern="a.b", text="a\nb")
@example(pattern=r"^\w$", text="ж")
@example(pattern=r"\B", text="")
@example(pattern="[]|[^]", text="\n")
def test_a_pattern_means_what_it_means_in_ecmascript(found: Found, pattern: str, text: str) -> None:
    assert found(text, _taken(pattern)) is _test(pattern, "u", text)


@_quietly
@given(pattern=_PATTERNS, text=_TEXTS)
def test_options_mean_what_flags_mean_in_ecmascript(found: Found, pattern: str, text: str) -> None:
    assert found(text, _taken(f"(?s){pattern}")) is _test(pattern, "su", text)
    assume(r"\p" not in pattern.lower())  # QuickJS has no `\p{Lu}` in any case
    assert found(text, f"(?i){pattern}") is _test(pattern, "iu", text)
    assert found(text, f"(?i:{pattern})") is _test(pattern, "iu", text)


@_quietly
@given(
    pattern=st.lists(
        st.sampled_from([*"abж._-]}", r"\.", r"\d", "[ab]", "[^a-y]", "a+", "b?", "(?:ab){2}", "(?:a|bж)", "x{"]),
        max_size=5,
    ).map("".join),
    text=st.text(alphabet="abxж._-]{}1", max_size=8),
)
def test_a_pattern_means_what_it_means_in_python(found: Found, pattern: str, text: str) -> None:
    assert found(text, _taken(pattern)) is (re.search(pattern, text, re.ASCII) is not None)


@pytest.mark.parametrize(
    "pattern, text, expected",
    [
        ("(?<year>[0-9]{4})-", "2024-", True),
        ("(?i)straSSe|ÄPFEL", "äpfel", True),
        ("(?-i:A)", "a", False),
        ("(?i:a(?-i:b))", "AB", False),
        ("(?i:a(?-i:b))", "Ab", True),
        ("(?s:a.)b.", "a\nb\n", False),
        (r"\-\#\'\_", "-#'_", True),
        ("a{x}]", "a{x}]", True),
        (r"[\b]", "\b", True),
        (r"[\x00-\x1f]", "\x1f", True),
        (r"[^\x01-\u{10ffff}]", "a", False),
        (r"\0", "0", False),
        ("^[^x]$", "\n", True),
        ("(?:ab|ac)+d", "abacd", True),
        ("(^)*a()+?$", "ba", True),
        (r"(\b){2,}a(?:$|^){0}b", "ab", True),
        (r"(\B)+b|(a|)c", "b", False),
        ("", "a", True),
    ],
)
def test_what_ecmascript_of_today_has_and_its_signs(found: Found, pattern: str, text: str, expected: bool) -> None:
    check_text(pattern, 1)
    assert found(text, pattern) is expected


def test_a_pattern_may_be_a_literal_or_a_parameter(api: Api) -> None:
    """The plan of the one with another pattern, a null, and one that is not taken."""
    for sign in ("USD", "EEK"):
        Currency.objects.create(currency_sign=sign, name=english(sign))
    everything, of_e = {"EUR", "USD", "EEK"}, {"EUR", "EEK"}
    for written in ("matchesPattern(CurrencySign,'{}')", "matchesPattern(CurrencySign,@p)&@p='{}'"):
        cache.clear()
        for pattern, expected in (("^E", of_e), (r"^\p{Lu}{3}$", everything), ("^[^E]", everything - of_e)):
            answer = api.get(f"General_Currencies_Currencies?$filter={written.format(quote(pattern))}")
            assert {row["CurrencySign"] for row in answer.json()["value"]} == expected
        answer = api.get(f"General_Currencies_Currencies?$filter={written.format(quote(r'E$|(?=E)'))}")
        assert answer.status_code == 400
        assert error_of(answer)["message"].endswith("is not supported at its position 3: a look ahead")
    for nothing in ("matchesPattern(CurrencySign,null)", "matchesPattern(CurrencySign,@p)&@p=null"):
        assert api.get(f"General_Currencies_Currencies?$filter={nothing}").json()["value"] == []


# --- what it may cost ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    ["^a.*b.*c.*d.*e$", "[a-z]{2,3}-?[0-9]{1,4}", "(de|bg)-.*-.*", "a{3}b{3}c{3}", "", "(a|b)*", "(ab|ac)+"],
)
def test_ordinary_patterns_are_taken(pattern: str) -> None:
    check_text(pattern, 1)


@pytest.mark.parametrize(
    "pattern",
    ["a.*a.*a.*b", "^a.*a[ab].*a.*b", "a*a*a*b", "[ab]*a[ab]*c", "a{0,20}a{0,20}b", "^(a|aa)a?a*b", "[ab]*a[ab]{99}c"],
)
@pytest.mark.parametrize("length", [250, 1_500, 60_000, 300_000])
def test_no_text_keeps_a_pattern_that_is_taken_for_long(pattern: str, length: int) -> None:
    check_text(pattern, 1)
    begun = time.process_time()
    assert matches("a" * length, pattern) is False
    assert time.process_time() - begun < 5 * slowness()


def test_a_text_has_an_answer_however_long_it_is(found: Found) -> None:
    for text, pattern, expected in (
        ("a" * 100 + "b", "a*a*a*b", True),
        ("a" * 100_000 + "b", "a*a*a*b", True),
        ("a" * 100_000 + "b", "a*a*a*c", False),
        ("a" * 5_000 + "\nb", "a.*a.*a.*b", False),
        ("a" * 5_000 + "\nb", "(?s)a.*a.*a.*b$", True),
    ):
        assert found(text, pattern) is expected
    assert matches(None, "a") is matches("a", None) is None


@pytest.mark.parametrize("pattern", ["[ab]*a[ab]{255}c", "a"])
def test_matching_ends_when_the_time_is_over(pattern: str, settings: Settings) -> None:
    settings.QUERY_SECONDS = 0.0
    time_limit.begin()
    try:
        with pytest.raises(time_limit.QueryTooLong):
            matches("ab" * 50_000, pattern)
    finally:
        time_limit.end()
