"""What a run is given and what comes out of it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from scripts.sandbox.errors import HostCallError, ScriptLimitExceeded, ScriptThrew
from scripts.sandbox.limits import Limits
from scripts.sandbox.pool import SandboxPool

from .conftest import BRIDGE, SHORT, answer


def body(pool: SandboxPool, source: str, **options: Any) -> Any:
    result = pool.run(source, mode="function_body", prelude=BRIDGE, host_calls=answer, **options)
    return orjson.loads(result.value_json)


def test_a_script_returns_nothing_and_logs(pool: SandboxPool) -> None:
    result = pool.run("console.log('a', 1, null, undefined, [1, { b: 2 }], true); console.warn('b'); 42")
    assert result.value_json == b"null"
    assert result.parameters_json == b"null"
    assert result.console == 'a 1 null undefined [1,{"b":2}] true\nb'
    assert result.host_call_count == 0
    assert 0 < result.duration_ms < 60_000


@pytest.mark.parametrize(
    "logged, shown",
    [
        ("new Error('x')", "Error: x"),
        ("new TypeError('x')", "TypeError: x"),
        ("Symbol('s')", "Symbol(s)"),
        ("10n", "10"),
        ("() => 1", "() => 1"),
        ("new Date(0)", '"1970-01-01T00:00:00.000Z"'),
        ("(() => { const a = []; a.push(a); return a })()", "[object Array]"),
        ("'äöü 漢字 🙂'", "äöü 漢字 🙂"),
        ("'a\\nb'", "a\nb"),
        ("", ""),
    ],
)
def test_the_console_shows(pool: SandboxPool, logged: str, shown: str) -> None:
    assert pool.run(f"console.info({logged})").console == shown


def test_all_levels_of_the_console_are_kept_in_order(pool: SandboxPool) -> None:
    source = "for (const level of ['log', 'info', 'warn', 'error', 'debug']) console[level](level)"
    assert pool.run(source).console == "log\ninfo\nwarn\nerror\ndebug"


def test_a_long_console_is_cut_with_a_mark(pool: SandboxPool) -> None:
    console = pool.run("for (let i = 0; i < 100; i++) console.log('ä'.repeat(1000))").console
    text, _, mark = console.rpartition("\n")
    assert mark == f"… (console cut at {SHORT.console_bytes} bytes)"
    assert SHORT.console_bytes - 2 <= len(text.encode()) <= SHORT.console_bytes


def test_the_console_survives_the_kill(pool: SandboxPool) -> None:
    with pytest.raises(ScriptLimitExceeded) as over:
        pool.run("console.log('before'); for (;;);", limits=Limits(wall_seconds=0.1))
    assert over.value.console == "before"


def test_a_body_returns_json(pool: SandboxPool) -> None:
    assert body(pool, "return { a: [1, 'x', null, true], d: new Date(0) }") == {
        "a": [1, "x", None, True],
        "d": "1970-01-01T00:00:00.000Z",
    }
    assert body(pool, "") is None
    assert body(pool, "return") is None
    assert body(pool, "// only a comment") is None


def test_inputs_are_parameters_and_variables(pool: SandboxPool) -> None:
    result = pool.run(
        "parameters.out = a + parameters.b; return typeof class_ + ' ' + parameters['no identifier']",
        mode="function_body",
        parameters={"a": 1, "b": 2, "class": 3, "no identifier": 4, "parameters": 5, "class_": 6},
    )
    assert orjson.loads(result.value_json) == "number 4"
    assert orjson.loads(result.parameters_json)["out"] == 3


def test_globals_reach_the_script_or_the_preludes_function(pool: SandboxPool) -> None:
    assert pool.run("console.log(who)", globals_json=b'{"who": "me"}').console == "me"
    prelude = "return (globals) => { globalThis.who = globals.who + '!' }"
    assert pool.run("console.log(who)", prelude=prelude, globals_json=b'{"who": "me"}').console == "me!"


def test_a_host_error_is_an_error_in_the_script(pool: SandboxPool) -> None:
    assert body(
        pool,
        "try { call('refuse') } catch (e) {"
        " return [e instanceof Error, e.name, e.message, e.code, e.data, String(e)] }",
    ) == [True, "ValidationFailed", "refused", 2029, {"target": "Code"}, "ValidationFailed: refused"]


def test_an_uncaught_host_error_keeps_its_cause(pool: SandboxPool) -> None:
    with pytest.raises(ScriptThrew) as failure:
        body(pool, "call('refuse')")
    assert (failure.value.name, failure.value.code) == ("ValidationFailed", 2029)
    assert isinstance(failure.value.host_error, HostCallError)
    assert failure.value.host_error.data == {"target": "Code"}
    with pytest.raises(ScriptThrew) as failure:
        body(pool, "try { call('refuse') } catch (e) { throw new Error('mine') }")
    assert failure.value.host_error is None


def test_a_prelude_may_work_at_the_end(pool: SandboxPool) -> None:
    prelude = """
      const pending = [];
      globalThis.later = (value) => { pending.push(value) };
      sandbox.beforeEnd(() => host("flush", pending));
    """
    seen: list[Any] = []
    pool.run(
        "later(1); Promise.resolve().then(() => later(2))",
        prelude=prelude,
        host_calls=lambda method, arguments: seen.append((method, arguments)),
    )
    assert seen == [("flush", [[1, 2]])]
    with pytest.raises(ScriptThrew):
        pool.run("later(1); throw new Error('x')", prelude=prelude, host_calls=lambda m, a: seen.append((m, a)))
    assert len(seen) == 1


def test_promises_are_worked_off(pool: SandboxPool) -> None:
    assert body(pool, "return (async () => { let s = 0; for (const x of [1, 2]) s += await x; return s })()") == 3
    assert pool.run("Promise.resolve().then(() => console.log('later')); console.log('now')").console == "now\nlater"
    with pytest.raises(ScriptThrew) as failure:
        pool.run("(async () => { throw new RangeError('x') })()")
    assert failure.value.name == "RangeError"
    assert body(pool, "return Promise.all([call('echo', 1), Promise.resolve(2)])") == [1, 2]


@pytest.mark.parametrize(
    "source",
    [
        "Promise.reject(new Error('x')).catch(() => {})",
        "Promise.reject(new Error('x')).then(null, () => {})",
        "const p = Promise.reject(new Error('x')); Promise.resolve().then(() => {}).then(() => p.catch(() => {}))",
        "async function f() { throw new Error('x') } (async () => { try { await f() } catch (e) {} })()",
        "const p = (async () => { throw 1 })(); (async () => { await null; await null; await p.catch(() => {}) })()",
        "Promise.allSettled([Promise.reject(1), Promise.reject(2)])",
        "Promise.race([Promise.resolve(1), Promise.reject(2)])",
        "Promise.any([Promise.reject(1), Promise.resolve(2)])",
        "Promise.reject(new Error('x')).finally(() => {}).catch(() => {})",
        "new Promise((resolve, reject) => { resolve(1); reject(new Error('x')) })",
    ],
)
def test_a_rejection_that_is_handled_in_time_is_none(pool: SandboxPool, source: str) -> None:
    assert pool.run(source + "; console.log('end')").console == "end"


@pytest.mark.parametrize(
    "source, said",
    [
        ("Promise.reject(new RangeError('x')); 1", ("RangeError", "x", 1, 16)),
        ("async function f() {\n  throw new Error('x')\n}\nf();\n1", ("Error", "x", 2, 3)),
        (
            "async function f() {\n  await null;\n  null.x\n}\nf(); 1",
            ("TypeError", "cannot read property 'x' of null", 3, 8),
        ),
        ("Promise.resolve(1).then(() => {\n  throw new Error('x')\n}); 1", ("Error", "x", 2, 3)),
        ("const p = Promise.reject(new Error('x')); p.catch(() => {}); p.then(() => {}); 1", ("Error", "x", 1, 26)),
        ("Promise.reject(new Error('x')).finally(() => {}); 1", ("Error", "x", 1, 16)),
        ("Promise.all([Promise.reject(new Error('x'))]); 1", ("Error", "x", 1, 29)),
        ("Promise.reject(new Error('first')); Promise.reject(new Error('second')); 1", ("Error", "first", 1, 16)),
        ("Promise.reject('plain'); 1", ("Error", "plain", 1, 1)),
        ("class P extends Promise {}\nP.reject(new Error('x')); 1", ("Error", "x", 2, 10)),
    ],
)
def test_a_rejection_that_nothing_handles_fails_the_run(
    pool: SandboxPool, source: str, said: tuple[str, str, int | None, int | None]
) -> None:
    with pytest.raises(ScriptThrew) as failure:
        pool.run(f"console.log('so far');{source}")
    place = (failure.value.line, failure.value.column)
    if place[0] == 1:
        place = (1, failure.value.column - len("console.log('so far');"))  # type: ignore[operator]
    assert (failure.value.name, failure.value.message, *place) == said
    assert failure.value.console == "so far"


def test_a_rejection_keeps_the_cause_and_comes_after_what_the_script_throws_itself(pool: SandboxPool) -> None:
    with pytest.raises(ScriptThrew) as failure:
        body(pool, "(async () => { call('refuse') })(); return 1")
    assert isinstance(failure.value.host_error, HostCallError)
    with pytest.raises(ScriptThrew, match="own"):
        body(pool, "Promise.reject(new Error('lost')); throw new Error('own')")
    with pytest.raises(ScriptThrew, match="lost"):
        body(pool, "Promise.reject(new Error('lost')); return new Promise(() => {})")


def test_halves_of_characters_come_out_as_replacements(pool: SandboxPool) -> None:
    with pytest.raises(ScriptThrew) as failure:
        pool.run("const e = new Error('a\\ud800b🙂'); e.name = 'N\\udc00'; e.code = 'C\\ud800'; throw e")
    assert (failure.value.message, failure.value.name, failure.value.code) == ("a\ufffdb🙂", "N\ufffd", "C\ufffd")
    with pytest.raises(ScriptThrew) as failure:
        pool.run("throw new Error('x'.repeat(9999) + '🙂')")
    assert failure.value.message == "x" * 9999 + "\ufffd"
    assert (
        pool.run("console.log('a\\ud800', '\\udc00b', '\\ud83d\\ude42', '\\\\ud800')").console
        == "a\ufffd \ufffdb 🙂 \\ud800"
    )
    assert body(pool, "return call('echo', { '\\ud800': ['\\udfff'] })") == {"\ufffd": ["\ufffd"]}


def test_runs_share_nothing(pool: SandboxPool) -> None:
    for _ in range(4):
        pool.run(
            "globalThis.leak = 1; var leak2 = 1; Array.prototype.leak = 1; Object.prototype.leak = 1;"
            "console.leak = 1; Promise.prototype.then = null; JSON.stringify = null"
        )
        assert body(pool, "return [typeof leak, typeof leak2, [].leak, console.leak].join()") == "undefined,undefined,,"


def test_preludes_of_several_kinds_take_turns(pool: SandboxPool) -> None:
    for number in list(range(12)) * 2:
        assert pool.run("console.log(which)", prelude=f"globalThis.which = {number}").console == str(number)


def test_large_values_cross_both_ways(pool: SandboxPool) -> None:
    assert body(pool, "return call('echo', 'ж'.repeat(1e6)).length") == 1_000_000
    assert len(body(pool, "return 'ж'.repeat(1e6)")) == 1_000_000


def test_an_answer_may_be_json_that_is_there_already(pool: SandboxPool) -> None:
    result = pool.run(
        "console.log(call('x').a)", prelude=BRIDGE, host_calls=lambda method, arguments: orjson.Fragment(b'{"a": 1.50}')
    )
    assert result.console == "1.5"
