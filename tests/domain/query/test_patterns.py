"""matchesPattern: which patterns are taken, what they match, and that none of them runs away."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import wildcards
from domain.query.patterns import check_text, matches
from foundation import errors


@pytest.mark.parametrize(
    "pattern, why",
    [
        ("(a+)+$", "repeats what itself repeats"),
        ("(ab|c)*", "repeats what itself repeats or branches"),
        (r"(a)\1", "refers back"),
        ("(?=a)b", "looks around"),
        ("a*b*c*d*e", "more than 3 repetitions"),
        ("a{0,20}" * 6 + "b", "share a text"),
        ("a?" * 30 + "b", "share a text"),
        ("(a|aa)" * 12 + "b", "share a text"),
        ("x" * 501, "longer than"),
        ("(", "cannot be read"),
    ],
)
def test_patterns_that_could_run_away_are_refused(pattern: str, why: str) -> None:
    with pytest.raises(errors.BadRequest, match=re.escape(why)):
        check_text(pattern, 1)


@pytest.mark.parametrize("pattern", ["^a.*b.*c.*d.*e$", "[a-z]{2,3}-?[0-9]{1,4}", "(de|bg)-.*-.*", "a{3}b{3}c{3}", ""])
def test_ordinary_patterns_are_taken(pattern: str) -> None:
    check_text(pattern, 1)


@pytest.mark.parametrize(
    "pattern", ["a.*a.*a.*b", "^a.*a[ab].*a.*b", "a*a*a*b", "[ab]*a[ab]*a", "a{0,20}a{0,20}b", "^(a|aa)a?a*b"]
)
@pytest.mark.parametrize("length", [250, 1_500, 60_000, 300_000])
def test_no_text_keeps_a_pattern_that_is_taken_for_long(pattern: str, length: int) -> None:
    check_text(pattern, 1)
    begun = time.process_time()
    matches("a" * length, pattern)
    assert time.process_time() - begun < 5


def test_a_text_that_is_too_long_for_its_pattern_is_no_answer_at_all() -> None:
    assert matches("a" * 100 + "b", "a*a*a*b") is True
    assert matches("a" * 100_000 + "b", "a*a*a*b") is None
    assert matches("a" * 100_000 + "b", "a.*a.*a.*b") is True
    assert matches(None, "a") is matches("a", None) is None


_TEXTS = st.text(alphabet="ab\nд", max_size=8)


@given(parts=st.lists(st.text(alphabet="ab\nд", max_size=3), min_size=1, max_size=5), text=_TEXTS)
def test_wildcards_are_matched_as_the_expression_would(parts: list[str], text: str) -> None:
    pattern = ".*".join(map(re.escape, parts))
    expected = re.fullmatch(pattern, text, re.DOTALL) is not None
    assert wildcards.matches(parts, text) is expected
    assert matches(text, f"\\A{pattern}\\Z") is expected
    # `$` alone would in Python also match before a last line break; on PostgreSQL it does not.
    assert matches(text, f"^{pattern}$") is expected
    assert matches(text, pattern) is (re.search(pattern, text, re.DOTALL) is not None)
