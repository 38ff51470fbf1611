"""Arguments are checked in the platform's own process: whatever schema and value are, in bounded time."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from scripts.parameters import MAX_PROBLEMS, InvalidSchema, ParameterSchema, Problem, read_schema
from tests.support.measuring import slowness


def schema_of(**parameters: Any) -> ParameterSchema:
    return read_schema(json.dumps(parameters))


def problems_of(schema: ParameterSchema, **arguments: Any) -> list[Problem]:
    return schema.bind(arguments)[1]


@pytest.mark.parametrize(
    "items, unique",
    [
        ([], True),
        ([1, 2, "1", True, None, [], {}, [1], {"a": 1}], True),
        ([1, 1.0], False),
        ([0, False], True),
        ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
        ([[1, 2], [2, 1]], True),
        ([{"a": [True]}, {"a": [1]}], True),
        (["a", "a"], False),
    ],
)
def test_unique_items_are_unique_as_json_has_it(items: list[Any], unique: bool) -> None:
    found = problems_of(schema_of(a={"type": "array", "uniqueItems": True}), a=items)
    assert [problem.text for problem in found] == ([] if unique else ["a: the items are not unique"])
    assert problems_of(schema_of(a={"type": "array", "uniqueItems": False}), a=[1, 1]) == []


def test_many_objects_are_found_unique_in_one_pass() -> None:
    """Compared each with each, these took twenty seconds."""
    schema = schema_of(a={"type": "array", "uniqueItems": True})
    begun = time.process_time()
    assert problems_of(schema, a=[{"i": number} for number in range(5_000)]) == []
    assert time.process_time() - begun < 2 * slowness()


@pytest.mark.parametrize(
    "arguments",
    [
        {"a": [1] * 5_000},
        {f"unknown{number}": 1 for number in range(5_000)},
        {"a": [1] * 5_000, **{f"b{number}": 1 for number in range(5_000)}},
    ],
    ids=["wrong items", "unknown names", "both"],
)
def test_the_first_problems_are_told(arguments: dict[str, Any]) -> None:
    schema = schema_of(a={"type": "array", "items": {"type": "string"}})
    assert len(problems_of(schema, **arguments)) == MAX_PROBLEMS


def test_outputs_have_as_many_problems_told() -> None:
    schema = schema_of(a={"type": "array", "items": {"type": "string"}, "direction": "Output"})
    assert len(schema.outputs({"a": [1] * 5_000})[1]) == MAX_PROBLEMS


def test_a_value_with_too_many_parts_for_its_schema_is_not_checked_at_all() -> None:
    alternatives = [{"type": "object", "properties": {f"p{number}": {"const": number}}} for number in range(100)]
    schema = schema_of(a={"type": "array", "items": {"oneOf": alternatives}})
    begun = time.process_time()
    found = problems_of(schema, a=[{"x": 1}] * 100_000)
    assert [problem.text for problem in found] == ["a: too many values to be checked against its schema"]
    assert time.process_time() - begun < 2 * slowness()
    assert problems_of(schema_of(a={"type": "array"}), a=[1] * 100_000) == []


def test_what_is_nested_too_deeply_is_told() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    found = problems_of(schema_of(a={"type": "array", "uniqueItems": True}), a=[deep, deep])
    assert [problem.text for problem in found] == ["a: nested too deeply"]


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems", "pattern", "$ref"])
def test_keywords_that_could_run_away_are_refused(keyword: str) -> None:
    with pytest.raises(InvalidSchema, match="is not supported"):
        schema_of(a={"type": "object", "allOf": [{keyword: False}]})
