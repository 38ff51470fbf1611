"""Patterns of Like."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.like_patterns import Pattern, parse
from tests.support.measuring import slowness


def as_expression(pattern: str) -> str:
    """The pattern as a regular expression."""
    meant = {"*": ".*", "%": ".*", "?": ".", "_": "."}
    found = re.findall(r"\\[*%?_\\]|.", pattern, re.DOTALL)
    return "".join(re.escape(token[1]) if len(token) == 2 else meant.get(token, re.escape(token)) for token in found)


@given(pattern=st.text("ab\nд*%?_\\", max_size=8), text=st.text("ab\nд*?_\\", max_size=8))
def test_patterns_match_as_the_expression_would(pattern: str, text: str) -> None:
    expected = re.fullmatch(as_expression(pattern), text, re.DOTALL) is not None
    assert Pattern(pattern).matches(text) is expected


@given(text=st.text("ab*%?_\\", max_size=8))
def test_every_text_can_be_written_as_a_pattern(text: str) -> None:
    written = re.sub(r"[*%?_\\]", r"\\\g<0>", text)
    assert parse(written) == (tuple(text),)
    assert Pattern(written).matches(text)


@pytest.mark.parametrize(
    "pattern, text, expected",
    [
        ("c:\\temp*", "C:\\TEMP\\x", True),
        ("100\\%", "100%", True),
        ("100\\%", "1000", False),
        ("a\\_b", "A_B", True),
        ("a\\_b", "axb", False),
        ("stra?e", "Straße", True),
        ("stra??e", "Straße", False),
        ("strass_", "Straße", True),
        ("*STRASSE", "Lange Straße", True),
        ("?", "", False),
        ("_", "Ж", True),
        ("?*", "x", True),
        ("%", "", True),
    ],
)
def test_case_and_escapes(pattern: str, text: str, expected: bool) -> None:
    assert Pattern(pattern).matches(text) is expected


@pytest.mark.parametrize("pattern", ["*a" * 120 + "b", "%a_" * 80 + "b", "*" + "?" * 200 + "b"])
def test_long_texts_take_time_proportional_to_their_length(pattern: str) -> None:
    matcher = Pattern(pattern)
    started = time.process_time()
    assert not matcher.matches("a" * 20_000)
    assert time.process_time() - started < 2 * slowness()
