"""Patterns whose only wildcard stands for any characters."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from domain import wildcards


@given(
    parts=st.lists(st.text(alphabet="ab\nд", max_size=3), min_size=1, max_size=5),
    text=st.text(alphabet="ab\nд", max_size=8),
)
def test_wildcards_are_matched_as_the_expression_would(parts: list[str], text: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, parts)), text, re.DOTALL) is not None
    assert wildcards.matches(parts, text) is expected
