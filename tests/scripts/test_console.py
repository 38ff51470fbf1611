"""The console of scripts: what one knows from browsers and Node, as text (spec 04, 4.2)."""

from __future__ import annotations

import json
import re

import pytest
from django.test import override_settings

from tests.rules.cast import World
from tests.scripts.cast import console, execute
from tests.support.api import Api


@pytest.mark.parametrize(
    "source, said",
    [
        ("console.dir({a: [1, null]})", '{"a":[1,null]}'),
        ("console.group('G', 1); console.log('a\\nb'); console.group(); console.warn('c'); console.groupEnd();"
         "console.info('d'); console.groupEnd(); console.groupEnd(); console.log('e')",
         "G 1\n  a\n  b\n    c\n  d\ne"),
        ("console.groupCollapsed('G'); console.log('a')", "G\n  a"),
        ("console.count(); console.count(); console.count('x'); console.countReset(); console.count();"
         "console.countReset('y')", "default: 1\ndefault: 2\nx: 1\ndefault: 1\nCount for 'y' does not exist"),
        ("console.assert(true, 'no'); console.assert(1 > 2, 'too small', {a: 1}); console.assert(false);"
         "console.assert(null, {b: 2})",
         'Assertion failed: too small {"a":1}\nAssertion failed\nAssertion failed: {"b":2}'),
        ("console.time('t'); console.time('t'); console.timeEnd('u'); console.timeLog('v', 1)",
         "Label 't' already exists for console.time()\nNo such label 'u' for console.timeEnd()\n"
         "No such label 'v' for console.timeLog()"),
        ("function f() {\n  console.trace('here', 1);\n}\nf()",
         "Trace: here 1\n    at f (script.js:2)\n    at <eval> (script.js:4)"),
        ("console.table(5); console.table('x'); console.table(null)", "5\nx\nnull"),
    ],
)  # fmt: skip
def test_what_is_said(api: Api, source: str, said: str) -> None:
    assert console(api, source) == said


def test_a_timer_tells_milliseconds(api: Api) -> None:
    said = console(api, "console.time(); console.timeLog('default', 'x'); console.timeEnd(); console.timeEnd()")
    first, second, third = said.split("\n")
    assert re.fullmatch(r"default: \d+\.\d{3}ms x", first)
    assert re.fullmatch(r"default: \d+\.\d{3}ms", second)
    assert third == "No such label 'default' for console.timeEnd()"


@pytest.mark.parametrize(
    "data, table",
    [
        ("[{a: 1, b: 'x'}, {a: 22, c: [1]}]", """
┌─────────┬────┬───┬─────┐
│ (index) │ a  │ b │ c   │
├─────────┼────┼───┼─────┤
│ 0       │ 1  │ x │     │
│ 1       │ 22 │   │ [1] │
└─────────┴────┴───┴─────┘"""),
        ("[{a: 1, b: 2}], ['b', 'n']", """
┌─────────┬───┬───┐
│ (index) │ b │ n │
├─────────┼───┼───┤
│ 0       │ 2 │   │
└─────────┴───┴───┘"""),
        ("{first: [1, 2], second: true, Third: {1: 'two\\nlines'}}", """
┌─────────┬───┬───────────┬────────┐
│ (index) │ 0 │ 1         │ Values │
├─────────┼───┼───────────┼────────┤
│ first   │ 1 │ 2         │        │
│ second  │   │           │ true   │
│ Third   │   │ two lines │        │
└─────────┴───┴───────────┴────────┘"""),
        ("new Map([['k', 1], [{}, 2]])", """
┌─────────┬────────┐
│ (index) │ Values │
├─────────┼────────┤
│ k       │ 1      │
│ {}      │ 2      │
└─────────┴────────┘"""),
        ("new Set(['a'])", """
┌─────────┬────────┐
│ (index) │ Values │
├─────────┼────────┤
│ 0       │ a      │
└─────────┴────────┘"""),
        ("[]", """
┌─────────┐
│ (index) │
├─────────┤
└─────────┘"""),
    ],
)  # fmt: skip
def test_a_table_is_aligned(api: Api, data: str, table: str) -> None:
    assert console(api, f"console.table({data})") == table.strip()


def test_a_table_of_entities(api: Api, world: World) -> None:
    source = """
        const found = Domain.General.CurrenciesRepository.query({});
        console.table(found, ["currencySign", "Name"]);
        console.group(); console.table(found); console.groupEnd();
        for (const text of ["CurrencySign", "EUR"]) console.log(text);
    """.replace("Domain.General.CurrenciesRepository", "Domain.General.Currencies.CurrenciesRepository")
    said = console(api, source)
    assert "│ currencySign │" in said
    assert "\n  │ (index) │" in said


@pytest.mark.parametrize(
    "source",
    [
        "for (;;) console.group()",
        "for (let i = 0; i < 5000; i++) console.group('x'.repeat(100))",
        "console.table(Array.from({length: 300000}, (_, i) => ({a: 'x'.repeat(50)}))); for (;;) ;",
        "console.table(Array.from({length: 3000}, (_, i) => ({['k' + i]: i})))",
        "console.count('x'.repeat(3e6)); console.time('x'.repeat(3e6)); console.timeEnd('x'.repeat(3e6))",
        "console.assert(false, 'x'.repeat(3e6))",
        "console.table([{a: 'x'.repeat(3e6)}])",
        "console.group('a\\n'.repeat(1e6)); console.log('a\\n'.repeat(1e6))",
    ],
)
def test_the_consoles_limit_holds(api: Api, source: str) -> None:
    with override_settings(SCRIPT_WALL_SECONDS=1.0):
        response = execute(api, source)
    body = json.loads(response.content)
    text = body["console"] if response.status_code == 200 else body["error"]["info"]
    assert len(text.encode()) < 1_050_000
    if response.status_code != 200:
        assert body["error"]["type"] == "ScriptLimitExceeded"


def test_a_script_that_breaks_built_ins_breaks_no_console(api: Api) -> None:
    source = """
        Array.prototype.join = Map.prototype.set = Map.prototype.get = Map.prototype.forEach = () => { throw 1 };
        String.prototype.split = String.prototype.repeat = String.prototype.padEnd = Object.keys = () => { throw 2 };
        console.count(); console.time(); console.group('g'); console.log('a'); console.groupEnd();
        console.table([{a: 1}]);
    """
    assert console(api, source).startswith("default: 1\ng\n  a\n┌─")
