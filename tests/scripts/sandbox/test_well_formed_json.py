"""Texts out of the engine are well formed."""

from __future__ import annotations

import json

import pytest

from scripts.sandbox.well_formed_json import well_formed


@pytest.mark.parametrize(
    "given, expected",
    [
        (r'"a"', "a"),
        (r'"\ud800"', "\ufffd"),
        (r'"\uD800\udc00x"', "\U00010000x"),
        (r'"\ud800\ud800\udc00"', "\ufffd\U00010000"),
        (r'"\udc00\ud800"', "\ufffd\ufffd"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800"', "\\\ufffd"),
        (r'"\\\\ud800\udc00"', "\\\\ud800\ufffd"),
        (r'"\ud7ff\ue000"', "\ud7ff\ue000"),
        (r'{"\ud800": ["\udbff"]}', {"\ufffd": ["\ufffd"]}),
    ],
)
def test_halves_of_characters_are_replaced_and_nothing_else(given: str, expected: object) -> None:
    assert json.loads(well_formed(given)) == expected
