"""Messages are for people who know JSON: nothing in them is spelled as Python spells it (spec 07)."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from domain.odata.operations.catalogue import Operation, Parameter, operations
from tests.domain.odata.test_writing import CURRENCIES, ORDERS, order_body
from tests.rules.cast import World
from tests.scripts.cast import execute, make_script
from tests.support.api import Api, error_of

pytestmark = pytest.mark.once

PYTHON = re.compile(
    r"Decimal\(|\bNone\b|\bTrue\b|\bFalse\b|<class|NoneType|object at 0x|datetime\.|UUID\(|\{'\w|\['\w|\bisoformat\b"
)
#: JSON texts, so that numbers come as they were written.
VALUES = (
    "null", "true", "false", "0", "-1", "1.0", "1.5", "1e300", "1e400", "1E-400", "1e999999999", "1" * 40,
    '""', '"x"', "[]", "[null, true, 1.0]", "{}", '{"a": 1.5, "b": [null]}', '"2020-01-01"', '"\\u0041"',
)  # fmt: skip
LANGUAGES = ("en", "bg", "de")


def check(response: Any, sent: str) -> None:
    """A failure is one of the platform's own, and says nothing in Python."""
    if response.status_code < 400:
        return
    error = error_of(response)
    assert error["type"] != "InternalError", (sent, error)
    said = [error["message"], error.get("target") or "", *error.get("parameters", ())]
    said += [text for detail in error.get("details", ()) for text in (detail["message"], detail.get("target") or "")]
    for text in said:
        assert PYTHON.search(text) is None, (sent, text)


def called(operation: Operation) -> list[tuple[Parameter, str]]:
    """Each parameter of the operation with each value."""
    return [(parameter, value) for parameter in operation.parameters for value in VALUES]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("operation", operations.all(), ids=lambda operation: operation.name)
def test_an_operation_given_anything(api: Api, world: World, operation: Operation, language: str) -> None:
    path = operation.name
    if operation.name == "Execute":
        path = f"{make_script(api, 'return 1;')}/Execute"
    elif operation.bound_to == "documents":
        path = f"{api.create(ORDERS, order_body(world))['@odata.id']}/{operation.name}"
    elif operation.bound_to:
        path = f"{CURRENCIES}({world.currency})/{operation.name}"
    headers = {"Accept_Language": language}
    if operation.is_function:
        check(api.get(path, **headers), path)
        for parameter, value in called(operation):
            for others in ({}, {p.name: "'x'" for p in operation.parameters if not p.optional}):
                given = {**others, parameter.name: f"'{value[1:-1]}'" if value.startswith('"') else quote(value)}
                written = ",".join(f"{name}={text}" for name, text in given.items())
                check(api.get(f"{path}({written})", **headers), written)
                check(api.get(f"{path}?{written.replace(',', '&')}", **headers), written)
        return
    for body in ("", "{}", *VALUES, '{"nope": null}'):
        check(api.post(path, body, **headers), body)
    for parameter, value in called(operation):
        for others in ({}, {p.name: "x" for p in operation.parameters if not p.optional}):
            rest = "".join(f", {json.dumps(name)}: {json.dumps(text)}" for name, text in others.items())
            body = f"{{{json.dumps(parameter.name)}: {value}{rest if parameter.name not in others else ''}}}"
            check(api.post(path, body, **headers), body)


SCHEMA = {
    "whole": {"type": "integer", "minimum": 2, "multipleOf": 2},
    "part": {"type": "number", "maximum": 5, "multipleOf": 0.5, "exclusiveMinimum": 0},
    "text": {"type": "string", "minLength": 2, "maxLength": 3},
    "choice": {"enum": ["a", 1, None, True, {"a": 1}]},
    "only": {"const": {"a": [None]}},
    "some": {"type": ["integer", "null"]},
    "list": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 2, "contains": {}},
    "thing": {
        "type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False,
        "direction": "InputOutput",
    },
    "any": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
    "must": {"type": "integer", "required": True},
    "out": {"type": "integer", "direction": "Output"},
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_script_given_anything(api: Api, language: str) -> None:
    path = f"{make_script(api, 'parameters.out = parameters.any; return 1;', SCHEMA)}/Execute"
    for name in [*SCHEMA, "unknown"]:
        for value in VALUES:
            rest = "" if name == "must" else ', "must": 1'
            body = f'{{"arguments": {{"{name}": {value}{rest}}}}}'
            check(api.post(path, body, Accept_Language=language), body)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_schema_given_anything(api: Api, language: str) -> None:
    keywords = (
        "type", "direction", "required", "default", "description", "enum", "items", "properties", "minimum",
        "multipleOf",
    )  # fmt: skip
    script = make_script(api, "")
    for keyword in keywords:
        for value in VALUES:
            given = f'{{"p": {{"type": "integer", "{keyword}": {value}}}}}'
            check(api.patch(script, {"ParameterSchema": given}, Accept_Language=language), given)


#: What scripts call with any value `v`, a few to a script.
CALLS = (
    "products.getById(v)", "products.getByIdList(v)", "products.getByIdList([v])", "products.query(v)",
    "products.query({PartNumber: v})", "products.query({PartNumber: {in: v}})",
    "products.query({PartNumber: {like: v}})",
    "products.query({ProductGroup: v})", "products.query({}, v)", "products.query({}, {fetch: v})",
    "products.query({}, {orderBy: v})", "products.query({}, {filter: v})", "products.createNew(v)",
    "products.createNew({PartNumber: v})", "products.createNew({Name: v})", "products.createNew({ProductGroup: v})",
    "products.createNew({Id: v})", "order.ChangeState(v)", "order.MakeVoid(v)", "order.CreateNotification(v, v, v, v)",
    "order.GetAllowedCustomPropertyValues(v, v, v, v, v, v)", "order.Lines.createNew(v)",
    "order.Lines.createNew({Quantity: v})", "order.Lines.Delete(v)", "order.DocumentDate = v", "order.Customer = v",
    "order.State = v", "order.CustomProperties[v] = v", "order.DocumentNotes = v", "Action.notify.user(v, v)",
    "Action.http.get(v, v)", "Action.http.post(v, v, v)", "Domain[v].XRepository", "Domain.Nope[v + 'Repository']",
)  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_host_calls_given_anything(api: Api, world: World, language: str) -> None:
    """Messages of errors that a script catches are the same ones."""
    api.create(ORDERS, order_body(world))
    count = 0
    for first in range(0, len(CALLS), 6):
        calls = ", ".join(f"(v) => {{ {call} }}" for call in CALLS[first : first + 6])
        source = f"""
            const values = [undefined, null, true, false, 0, 1.5, 1e300, "", "x", [], [null, true], {{}},
              {{a: [null, 1.5]}}, new Date(0), {{$e: 1}}, {{$e: null}}];
            const order = Domain.Crm.Sales.SalesOrdersRepository.query({{}}, {{fetch: 1}})[0];
            const products = Domain.General.Products.ProductsRepository;
            const said = [];
            for (const call of [{calls}]) for (const value of values) {{
              try {{ call(value) }} catch (error) {{
                said.push([String(call) + " " + JSON.stringify(value), error.message]);
              }}
            }}
            console.log(JSON.stringify(said));
        """
        response = execute(api, source, Accept_Language=language)
        assert response.status_code == 200, response.content
        for sent, message in json.loads(json.loads(response.content)["console"]):
            count += 1
            assert PYTHON.search(message) is None, (sent, message)
    assert count > 150


@pytest.mark.parametrize("given", ["1.0", "1e0", "10E-1", "2.000", "1e300"])
def test_a_number_without_a_fraction_is_an_integer(api: Api, given: str) -> None:
    path = f"{make_script(api, 'return parameters.n;', {'n': {'type': 'integer'}})}/Execute"
    response = api.post(path, f'{{"arguments": {{"n": {given}}}}}')
    assert response.status_code == 200, response.content


@pytest.mark.parametrize(
    "given, said",
    [
        ("1.5", "n: 1.5 is not of type integer"),
        ("true", "n: true is not of type integer"),
        ('"x"', 'n: "x" is not of type integer'),
        ("1E-400", "n: 1E-400 is not of type integer"),
        ("1e400", "n: a number is too large for a script"),
        ("1e999999999", "n: a number is too large for a script"),
        ('{"a": [null, 1.50]}', 'n: {"a": [null, 1.50]} is not of type integer'),
    ],
)
def test_other_values_are_shown_as_json(api: Api, given: str, said: str) -> None:
    path = f"{make_script(api, 'return parameters.n;', {'n': {'type': 'integer'}})}/Execute"
    error = error_of(api.post(path, f'{{"arguments": {{"n": {given}}}}}'))
    assert error["parameters"] == [said]
