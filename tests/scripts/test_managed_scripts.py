"""Managed scripts over HTTP (spec 04, 4.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts import history
from scripts.models import ScriptRun
from tests.scripts.cast import make_script
from tests.support.api import Api, error_of

SCHEMA = {
    "price": {"type": "number", "direction": "Input", "required": True},
    "percent": {"type": "number", "default": 10},
    "note": {"type": "string", "direction": "InputOutput"},
    "net": {"type": "number", "direction": "Output"},
}
TEXT = "parameters.net = price * (100 - percent) / 100; parameters.note = (note || '') + '!'; return {done: true}"


def run(api: Api, path: str, body: Any) -> Any:
    response = api.post(f"{path}/Execute", body)
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def test_arguments_go_in_and_outputs_come_out(api: Api) -> None:
    answer = run(api, make_script(api, TEXT, SCHEMA), {"arguments": {"price": 80, "percent": 25, "note": "x"}})
    assert answer.pop("@odata.context").endswith("$metadata#Erp.OpenObject")
    assert answer == {"parameters": {"note": "x!", "net": 60}, "returnValue": {"done": True}}


def test_defaults_fill_in(api: Api) -> None:
    answer = run(api, make_script(api, TEXT, SCHEMA), {"arguments": {"price": 50}})
    assert answer["parameters"] == {"note": "!", "net": 45}


def test_null_for_an_optional_argument_is_its_default(api: Api) -> None:
    answer = run(api, make_script(api, TEXT, SCHEMA), {"arguments": {"price": 50, "percent": None}})
    assert answer["parameters"] == {"note": "!", "net": 45}
    nullable = {"a": {"type": ["number", "null"], "default": 7}}
    answer = run(api, make_script(api, "return parameters.a", nullable, Code="S2"), {"arguments": {"a": None}})
    assert answer["returnValue"] is None


@pytest.mark.parametrize("body", [None, {}, {"arguments": None}, {"arguments": {}}])
def test_no_arguments_are_the_empty_set(api: Api, body: Any) -> None:
    answer = run(api, make_script(api, "return Object.keys(parameters).length"), body)
    assert answer["parameters"] == {}
    assert answer["returnValue"] == 0


@pytest.mark.parametrize(
    "body", [{"argumentsJson": "{}"}, {"arguments": "{}"}, {"arguments": []}, {"arguments": {}, "argumentsJson": None}]
)
def test_arguments_in_another_shape_are_malformed(api: Api, body: Any) -> None:
    response = api.post(f"{make_script(api, 'return 1')}/Execute", body)
    assert response.status_code == 400, response.content


@pytest.mark.parametrize(
    "arguments, named",
    [
        ({"prize": 1, "price": 1}, "prize"),
        ({}, "price"),
        ({"price": "x"}, "price"),
        ({"price": 1, "net": 2}, "net"),
        ({"price": None}, "price"),
    ],
)
def test_wrong_arguments_are_named(api: Api, arguments: Any, named: str) -> None:
    response = api.post(f"{make_script(api, TEXT, SCHEMA)}/Execute", {"arguments": arguments})
    error = error_of(response)
    assert (response.status_code, error["code"]) == (500, 3112)
    assert named in error["message"]
    assert any(detail["target"] == named for detail in error["details"])


def test_every_wrong_argument_is_named(api: Api) -> None:
    response = api.post(f"{make_script(api, TEXT, SCHEMA)}/Execute", {"arguments": {"prize": 1, "percent": "x"}})
    error = error_of(response)
    assert {detail["target"] for detail in error["details"]} == {"prize", "percent", "price"}
    assert error["message"].startswith("The arguments do not fit: 'prize' is not a parameter. Did you mean price")


@pytest.mark.parametrize(
    "text, code",
    [
        ("parameters.net = 'much'", 3113),
        ("parameters.net = () => 1", 3113),
        ("return NaN", 3113),
        ("return 10n", 3113),
        ("throw new Error('no')", 3103),
        ("throw new Error('\\ud800')", 3103),
        ("Promise.reject(new Error('no')); return 1", 3103),
        ("(async () => { await null; throw new Error('no') })(); return 1", 3103),
        ("for (;;) parameters.note = [parameters.note, new Array(1e6).fill(0)]", 3104),
    ],
)
def test_each_failure_has_its_code(api: Api, text: str, code: int) -> None:
    response = api.post(f"{make_script(api, text, SCHEMA)}/Execute", {"arguments": {"price": 1}})
    assert (response.status_code, error_of(response)["code"]) == (500, code), response.content


@pytest.mark.parametrize(
    "value, named",
    [
        ("new Map([[1, 2]])", "Map"),
        ("{at: [new Set([1])]}", "Set"),
        ("new WeakMap()", "WeakMap"),
        ("/x/", "RegExp"),
        ("new Error('x')", "Error"),
        ("new Uint8Array(2)", "Uint8Array"),
        ("() => 1", "function"),
        ("Symbol('x')", "symbol"),
        ("10n", "bigint"),
        ("Object(10n)", "BigInt"),
        ("NaN", "not finite"),
        ("[undefined]", "undefined"),
        ("{at: undefined}", "undefined has no JSON form, at at"),
        ("[new Date(NaN)]", "invalid Date"),
    ],
)
def test_what_json_cannot_hold_is_an_error(api: Api, value: str, named: str) -> None:
    path = make_script(api, f"return {value}", {"any": {"direction": "Output"}})
    for text in (f"return {value}", f"parameters.any = {value}"):
        assert api.patch(path, {"ScriptText": text}).status_code == 204
        error = error_of(api.post(f"{path}/Execute", {}))
        assert error["code"] == 3113, error
        assert "has no JSON form" in error["message"], error
        assert named in error["message"], error


@pytest.mark.parametrize(
    "value, given",
    [
        ("undefined", None),
        ("null", None),
        ("[new Date(0), new String('s'), Object(true)]", ["1970-01-01T00:00:00.000Z", "s", True]),
        ("new (class Point { x = 1 })()", {"x": 1}),
        ("Object.create(null)", {}),
        ("{toJSON: () => null}", None),
        ("new Domain.Types.Amount(5, 'EUR')", {"Value": 5, "Currency": "EUR"}),
    ],
)
def test_what_json_holds_comes_out(api: Api, value: str, given: Any) -> None:
    path = make_script(api, f"parameters.any = {value}; return {value}", {"any": {"direction": "Output"}})
    answer = run(api, path, {})
    assert (answer["returnValue"], answer["parameters"]["any"]) == (given, given)


@pytest.mark.parametrize(
    "values, code",
    [
        ({"IsActive": False}, 3110),
        ({"Language": "Python"}, 3111),
        ({"ScriptText": " "}, 3114),
        ({"ScriptText": None}, 3114),
    ],
)
def test_a_script_that_cannot_run_says_why(api: Api, values: dict[str, Any], code: int) -> None:
    path = make_script(api, "return 1", None, **({} if "ScriptText" in values else values))
    if "ScriptText" in values:
        assert api.patch(path, values).status_code == 204
    response = api.post(f"{path}/Execute", {})
    assert error_of(response)["code"] == code


def test_half_of_a_character_comes_out_as_a_replacement(api: Api) -> None:
    path = make_script(api, "parameters.note = note + '\\ud800'; return {'\\udc00': ['\\ud83d\\ude42']}", SCHEMA)
    answer = run(api, path, {"arguments": {"price": 1, "note": "n"}})
    assert answer["parameters"]["note"] == "n\ufffd"
    assert answer["returnValue"] == {"\ufffd": ["🙂"]}


def test_saving_checks_the_syntax(api: Api) -> None:
    response = api.post("Systems_Core_Scripts", {"Code": "S1", "Name": "S", "ScriptText": "return 1;\nlet = = 2"})
    error = error_of(response)
    assert error["code"] == 3115
    assert error["target"] == "ScriptText"
    assert "line 2" in error["message"]


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "[]",
        '{"a b": {}}',
        '{"a": {"type": "numbre"}}',
        '{"a": {"direction": "Sideways"}}',
        '{"a": {"type": "number", "default": "x"}}',
        '{"a": {"type": "string", "pattern": "(a+)+$"}}',
        '{"a": {"$ref": "http://localhost/schema"}}',
    ],
)
def test_saving_checks_the_schema(api: Api, schema: str) -> None:
    response = api.post(
        "Systems_Core_Scripts", {"Code": "S1", "Name": "S", "ScriptText": "return 1", "ParameterSchema": schema}
    )
    error = error_of(response)
    assert error["code"] == 3115
    assert error["target"] == "ParameterSchema"


def test_a_script_works_in_the_transaction_and_leaves_its_definition(api: Api) -> None:
    path = make_script(api, "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'})")
    before = api.read(path)
    inside = api.begin()
    run(inside, path, {})
    assert api.get("Library_Books/$count").content == b"0"
    assert inside.end().status_code == 204
    assert api.get("Library_Books/$count").content == b"1"
    assert api.read(path) == before


def test_outside_of_a_transaction_nothing_is_committed(api: Api) -> None:
    run(api, make_script(api, "Domain.Library.BooksRepository.createNew({Code: 'B1', Title: 'Tea'})"), {})
    assert api.get("Library_Books/$count").content == b"0"


def test_a_script_runs_another_in_its_own_dataset(api: Api) -> None:
    make_script(api, "Domain.Library.BooksRepository.createNew({Code: code, Title: 'Tea'}); return code", {
        "code": {"type": "string"}
    }, Code="INNER")  # fmt: skip
    outer = make_script(
        api,
        """
        const inner = Domain.Systems.Core.ScriptsRepository.query({Code: 'INNER'})[0];
        const answer = inner.Execute({arguments: {code: 'B7'}});
        return [answer.returnValue, Domain.Library.BooksRepository.query({Code: 'B7'}).length];
        """,
        Code="OUTER",
    )
    assert run(api, outer, {})["returnValue"] == ["B7", 1]


def test_scripts_that_run_each_other_end(api: Api) -> None:
    path = make_script(api, "return Domain.Systems.Core.ScriptsRepository.query({Code: 'S1'})[0].Execute().returnValue")
    error = error_of(api.post(f"{path}/Execute", {}))
    assert error["code"] == 3104


def test_a_run_whose_outputs_are_refused_is_in_the_history_as_failed(api: Api) -> None:
    path = make_script(api, "parameters.n = 'text';", {"n": {"type": "integer", "direction": "Output"}})
    assert error_of(api.post(f"{path}/Execute", {}))["type"] == "ScriptOutputsInvalid"
    history.pending.flush()
    run = ScriptRun.objects.get()
    assert run.outcome == "ScriptOutputsInvalid"
    assert run.message
