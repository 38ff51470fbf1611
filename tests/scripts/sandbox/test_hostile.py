# ruff: noqa: E501  a table: one script, one line
"""Scripts that mean harm: each ends in bounded time with a result or a clean error, and the next run is as ever."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

import orjson
import pytest

from scripts.sandbox.errors import (
    ScriptCrashed,
    ScriptFailed,
    ScriptLimitExceeded,
    ScriptResultInvalid,
    ScriptSyntaxError,
    ScriptThrew,
)
from scripts.sandbox.pool import SandboxPool

from .conftest import BRIDGE, SHORT, answer

# The wall limit, the watch's granularity, and a slow machine under load.
BOUND_SECONDS = SHORT.wall_seconds + 19.5

WALL = "wall cpu"
MEMORY = "memory wall cpu"  # whichever limit a bomb meets first
STACK = "stack"


class Hostile(NamedTuple):
    """outcome: a limit's name (one of several), an exception class, or the JSON that the function body returns."""

    name: str
    source: str
    outcome: str | type[ScriptFailed] | tuple[type[ScriptFailed], ...] | bytes


HOSTILE = [
    # Time
    Hostile("endless loop", "while (true);", WALL),
    Hostile("endless for", "for (;;) { Math.sqrt(2) }", WALL),
    Hostile("endless loop that catches everything", "while (true) { try { null.x } catch (e) {} }", WALL),
    Hostile("endless loop in finally", "try { throw 1 } finally { while (true); }", WALL),
    Hostile("catastrophic regular expression", "return /^(a+)+$/.test('a'.repeat(40) + 'b')", WALL),
    Hostile("catastrophic alternation", "return /(x|xx)+y/.exec('x'.repeat(60))", WALL),
    Hostile("backtracking over dots", "return /(.*)*(.*)*(.*)*[^c]$/.test('c'.repeat(200))", WALL),
    Hostile("splitting a huge string", "let s = 'ab'.repeat(4e6); for (;;) s.split('b')", MEMORY),
    Hostile("replacing in a huge string", "let s = 'a'.repeat(5e6); for (;;) s.replace(/a/g, 'b')", MEMORY),
    Hostile("sort with a lying comparer", "let a = []; for (let i = 0; i < 3e5; i++) a.push(i);"
            "for (;;) a.sort(() => Math.random() - 0.5)", WALL),
    Hostile("sort with a comparer that never returns", "[2, 1].sort(() => { while (true); })", WALL),
    Hostile("huge BigInt power", "return String(2n ** (2n ** 24n))", MEMORY),
    Hostile("BigInt that keeps growing", "let n = 3n; while (true) n = n * n", MEMORY),
    Hostile("sparse array walk", "let a = []; a.length = 4294967295; a.indexOf(1); for (;;) a.join('')", MEMORY),
    Hostile("array-like of 2^53 items", "return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", WALL),
    Hostile("generator without end", "function* g() { while (true) yield 1 } for (const x of g());", WALL),
    Hostile("promise chain without end", "function next() { return Promise.resolve().then(next) } return next()", MEMORY),
    Hostile("async loop without end", "(async () => { while (true) await null })()", WALL),
    Hostile("thenable that feeds itself",
            "const t = { then(done) { done(t) } }; return Promise.resolve(t)", WALL),
    Hostile("getter without end", "return { get x() { while (true); } }", WALL),
    Hostile("toJSON without end", "return { toJSON() { while (true); } }", WALL),
    Hostile("toString without end in console", "console.log({ toJSON() { throw 1 }, get [Symbol.toStringTag]() { for (;;); } })",
            WALL),
    Hostile("toString without end when thrown", "throw { toString() { while (true); }, toJSON() { throw 1 } }", ScriptThrew),
    Hostile("error whose message never comes",
            "const e = new Error; Object.defineProperty(e, 'message', { get() { for (;;); } }); throw e", WALL),
    Hostile("proxy without end", "const p = new Proxy({}, { get: () => { for (;;); } }); return p.x", WALL),
    Hostile("proxy that owns keys without end",
            "return new Proxy({}, { ownKeys() { for (;;); } })", WALL),
    Hostile("Date loop", "const end = Date.now() + 1e7; while (Date.now() < end);", WALL),
    Hostile("endless eval", "for (;;) eval('1 + 1')", WALL),
    Hostile("endless Function", "for (;;) new Function('return 1')()", WALL),
    # Memory
    Hostile("array that grows", "const a = []; while (true) a.push(new Array(1000).fill(1))", MEMORY),
    Hostile("growing array that catches", "const a = []; while (true) try { a.push(new Array(9999).fill(a)) } catch (e) {}",
            MEMORY),
    Hostile("string that doubles", "let s = 'x'; while (true) s += s", "memory wall cpu throw"),
    Hostile("rope that is flattened", "let s = 'x'.repeat(1e6); const all = []; while (true) all.push(s + all.length)", MEMORY),
    Hostile("repeat of a gigabyte", "return 'x'.repeat(2 ** 29).length", MEMORY),
    Hostile("repeat over the maximum", "return 'x'.repeat(2 ** 40)", ScriptThrew),
    Hostile("padStart of a gigabyte", "return 'x'.padStart(2 ** 29, 'ab').length", MEMORY),
    Hostile("typed array of two gigabytes", "return new Uint8Array(2 ** 31 - 1).length", MEMORY),
    Hostile("many typed arrays", "const a = []; while (true) a.push(new Float64Array(1e5).fill(1))", MEMORY),
    Hostile("ArrayBuffer of a terabyte", "return new ArrayBuffer(2 ** 40)", (ScriptThrew, ScriptLimitExceeded)),
    Hostile("JSON.parse of a bomb", "return JSON.parse('[' + '[1],'.repeat(3e6) + '0]').length", MEMORY),
    Hostile("JSON.stringify of shared children",
            "let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return JSON.stringify(a).length", MEMORY),
    Hostile("Map that grows", "const m = new Map; for (let i = 0; ; i++) m.set(i, [i])", MEMORY),
    Hostile("closures that grow", "let f = null; while (true) { const g = f; f = () => g }", MEMORY),
    Hostile("symbols that grow", "const a = []; for (let i = 0; ; i++) a.push(Symbol.for('s' + i))", MEMORY),
    Hostile("properties that grow", "const o = {}; for (let i = 0; ; i++) o['k' + i] = i", MEMORY),
    Hostile("regular expression of a huge source", "return new RegExp('(a|b)'.repeat(3e5)).test('a')",
            (ScriptThrew, ScriptLimitExceeded)),
    Hostile("promises that pile up", "const a = []; while (true) a.push(new Promise(() => {}))", MEMORY),
    Hostile("spread of millions of arguments", "return Math.max(...new Array(5e6).fill(1))",
            (ScriptThrew, ScriptLimitExceeded)),
    # Stack
    Hostile("recursion", "function f() { f() } f()", STACK),
    Hostile("mutual recursion by getter", "const o = { get x() { return this.x } }; o.x", STACK),
    Hostile("recursion by toString", "const o = { toString() { return '' + this } }; '' + o", STACK),
    Hostile("recursion by Proxy", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x",
            (ScriptLimitExceeded, ScriptCrashed)),
    Hostile("recursion by apply", "function f() { f.apply(null, [1]) } f()", STACK),
    Hostile("recursion that catches", "function f() { try { f() } finally { f() } } f()", "stack wall cpu"),
    Hostile("deep brackets to JSON.parse", "return JSON.parse('['.repeat(1e6))", STACK),
    Hostile("deep brackets to eval", "return eval('['.repeat(1e6))", STACK),
    Hostile("deep array to JSON.stringify", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return JSON.stringify(a)",
            (ScriptLimitExceeded, ScriptCrashed)),
    Hostile("deep array as result", "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
            (ScriptResultInvalid, ScriptLimitExceeded, ScriptCrashed)),
    Hostile("deep array as argument", "let a = []; for (let i = 0; i < 3e3; i++) a = [a]; call('echo', a)", ScriptThrew),
    Hostile("fairly deep array as result", "let a = []; for (let i = 0; i < 3e3; i++) a = [a]; return a", ScriptResultInvalid),
    Hostile("deep nesting in a regular expression", "return new RegExp('('.repeat(1e5) + ')'.repeat(1e5))",
            (ScriptThrew, ScriptLimitExceeded, ScriptCrashed)),
    Hostile("deep linked list given back", "let n = null; for (let i = 0; i < 1e5; i++) n = { n }; return 1", b"1"),
    # Reaching out
    Hostile("import()", "return import('os').then(() => 'in', () => 'refused')", b'"refused"'),
    Hostile("static import", "import * as std from 'std'", ScriptSyntaxError),
    Hostile("std and os", "return [typeof std, typeof os, typeof require, typeof process, typeof scriptArgs]",
            b'["undefined","undefined","undefined","undefined","undefined"]'),
    Hostile("Python's closures are not global",
            # The one name is a function of preludes/sandbox.js that marked `throw` statements call: throw_statements.py.
            "return Object.getOwnPropertyNames(globalThis).filter(n => n.startsWith('__'))", b'["__throwSite"]'),
    Hostile("a throw site leads nowhere",
            "const site = __throwSite(1e9); site.value = 'x'; return [Object.keys(site), site.value === undefined]",
            b'[["value"],true]'),
    Hostile("no shared memory", "return [typeof SharedArrayBuffer, typeof Atomics]", b'["undefined","undefined"]'),
    Hostile("Function constructor sees no closure", "return new Function('return typeof host + typeof callHost')()",
            b'"undefinedundefined"'),
    Hostile("eval sees no closure", "return (0, eval)('typeof host + typeof control + typeof sandbox')",
            b'"undefinedundefinedundefined"'),
    Hostile("caller and callee lead nowhere",
            "function f() { return [typeof f.caller, typeof arguments.callee.caller] } "
            "try { return f() } catch (e) { return 'refused' }", None),  # type: ignore[arg-type]
    Hostile("Error.prepareStackTrace gets no frames",
            "Error.prepareStackTrace = (e, frames) => frames; return typeof new Error().stack", b'"string"'),
    # Forging
    Hostile("function body that closes early", "}); console.log('out'); (function () {", ScriptSyntaxError),
    Hostile("function body that becomes an assignment", "}[globalThis.x = 1] = function () {", ScriptSyntaxError),
    Hostile("forged frames in the console", "console.log('\\x00\\x00\\x00\\x02D{}', '\\u0000F{}'); return 1", b"1"),
    Hostile("forged frame as argument", "return call('echo', '\\x00\\x00\\x00\\x02D{}\\u0000')", b'"\\u0000\\u0000\\u0000\\u0002D{}\\u0000"'),
    Hostile("forged method by toJSON on Array",
            "Array.prototype.toJSON = () => ['pwn']; return call('echo', 1)", b"1"),
    Hostile("method that is no string", "return call({ toString() { return 'echo' } }, 7)", None),  # type: ignore[arg-type]
    Hostile("method of a megabyte", "call('x'.repeat(1e6))", ScriptThrew),
    Hostile("argument over the message limit", "call('echo', 'x'.repeat(5e6))", ScriptThrew),
    Hostile("result over the message limit", "return 'x'.repeat(5e6)", "message"),
    Hostile("argument of a million arrays", "call('echo', new Array(1000).fill(new Array(1000).fill([])))", ScriptThrew),
    Hostile("argument of half a million objects", "call('echo', new Array(1000).fill(new Array(500).fill({})))", ScriptThrew),
    Hostile("result of a million arrays", "return new Array(1000).fill(new Array(1000).fill([]))", "message wall cpu"),
    Hostile("output of a million arrays", "parameters.x = new Array(1000).fill(new Array(1000).fill([]))", "message wall cpu"),
    Hostile("arguments by a bent iterator",
            "Array.prototype[Symbol.iterator] = function* () { yield 1; yield 2 }; return call('add', 5, 6)", b"3"),
    Hostile("accessors for every descriptor",
            "Object.prototype.get = () => 1; try { call('refuse') } catch (e) { return e.message.length > 0 }", b"true"),
    Hostile("setter for every first item",
            "Object.defineProperty(Array.prototype, '0', { set() { throw 1 }, get() { return 5 } }); return call('echo', 7)",
            None),  # type: ignore[arg-type]
    Hostile("lone surrogate through the host", "return call('echo', '\\ud800')", '"\ufffd"'.encode()),
    Hostile("lone surrogate as result", "return ['\\ud800x', '\\\\ud800', '\\ud83d\\ude42']", '["\ufffdx","\\\\ud800","🙂"]'.encode()),
    Hostile("lone surrogate in the console", "console.log('\\ud800'); return 1", b"1"),
    Hostile("lone surrogate as name and output", "parameters['\\udc00'] = 1; return { '\\ud800': 1 }", '{"\ufffd":1}'.encode()),
    Hostile("lone surrogate in a message", "throw new Error('\\ud800')", ScriptThrew),
    Hostile("lone surrogate all over an error",
            "const e = new Error('\\udfff'); e.name = e.code = '\\ud800'; e.stack = '    at \\ud800 (<input>:5001)'; throw e", ScriptThrew),
    Hostile("lone surrogate thrown", "throw '\\ud800'", ScriptThrew),
    Hostile("lone surrogate in a message of the engine", "null['\\ud800']", ScriptThrew),
    Hostile("character that is cut where a message ends", "throw new Error('x'.repeat(9999) + '🙂')", ScriptThrew),
    Hostile("character that is cut where a name ends", "const e = new Error('x'); e.name = 'x' + '🙂'.repeat(200); throw e", ScriptThrew),
    Hostile("character that is cut where a console's line ends", "console.log('x' + '🙂'.repeat(6e5)); return 1", b"1"),
    Hostile("lone surrogate as reason", "Promise.reject(new Error('\\ud800')); return 1", ScriptThrew),
    Hostile("__proto__ through the host", "return call('echo', JSON.parse('{\"__proto__\": {\"x\": 1}}')).x === undefined",
            b"true"),
    Hostile("promise as argument", "return call('echo', Promise.resolve(1))", b"{}"),
    Hostile("Symbol as argument", "return call('echo', Symbol('x'))", b"null"),
    Hostile("BigInt as argument", "call('echo', 1n)", ScriptThrew),
    Hostile("cycle as argument", "const a = []; a.push(a); call('echo', a)", ScriptThrew),
    Hostile("prototype setters do not see answers",
            "let seen = 0; Object.defineProperty(Object.prototype, 'x', { set() { seen++ } });"
            "call('echo', { x: 1 }); return seen", b"0"),
    Hostile("call with a broken Function.prototype.call",
            "Function.prototype.call = Function.prototype.apply = null; return call('echo', 3)", b"3"),
    Hostile("call with broken JSON", "JSON.parse = JSON.stringify = () => { throw 1 }; return call('echo', 4)", b"4"),
    Hostile("JSON removed", "delete globalThis.JSON; delete globalThis.Promise; return 5", b"5"),
    Hostile("globals frozen", "Object.freeze(globalThis); Object.freeze(Object.prototype); return 6", b"6"),
    Hostile("every global deleted",
            "for (const n of Object.getOwnPropertyNames(globalThis)) try { delete globalThis[n] } catch (e) {} return 7", b"7"),
    # Floods
    Hostile("console flood", "for (;;) console.log('x'.repeat(1000))", WALL),
    Hostile("console line of fifty megabytes", "console.log('x'.repeat(3e7)); return 1", None),  # type: ignore[arg-type]
    Hostile("host calls in a loop", "for (;;) call('echo', 1)", "host_calls wall cpu"),
    Hostile("host calls in a loop that catches", "for (;;) try { call('refuse') } catch (e) {}", "host_calls wall cpu"),
    Hostile("host calls by a getter", "const o = { get x() { return call('echo', o.y++) }, y: 0 }; for (;;) o.x",
            "host_calls wall cpu"),
    # Odd endings
    Hostile("throw null", "throw null", ScriptThrew),
    Hostile("throw undefined", "throw undefined", ScriptThrew),
    Hostile("throw a Symbol", "throw Symbol('x')", ScriptThrew),
    Hostile("throw an object without prototype", "throw Object.create(null)", ScriptThrew),
    Hostile("throw a revoked proxy", "const r = Proxy.revocable({}, {}); r.revoke(); throw r.proxy", ScriptThrew),
    Hostile("throw what cannot be shown", "throw { toString() { throw this } }", ScriptThrew),
    Hostile("error with traps in every property",
            "const e = new Error('x'); for (const p of ['name', 'message', 'stack', 'code'])"
            "  Object.defineProperty(e, p, { get() { throw 1 } }); throw e", ScriptThrew),
    Hostile("error with a forged stack",
            "const e = new Error('x'); e.stack = '    at f (<input>:99999999999)\\n'.repeat(1e4); throw e", ScriptThrew),
    Hostile("error of ten megabytes", "throw new Error('x'.repeat(1e7))", ScriptThrew),
    Hostile("forged out of memory", "const e = new InternalError('out of memory'); throw e", "memory"),
    Hostile("returns a function", "return () => 1", ScriptResultInvalid),
    Hostile("returns a BigInt", "return [1n]", ScriptResultInvalid),
    Hostile("returns NaN", "return { a: NaN }", ScriptResultInvalid),
    Hostile("returns a cycle", "const a = {}; a.a = a; return a", ScriptResultInvalid),
    Hostile("returns a Symbol", "return Symbol()", ScriptResultInvalid),
    Hostile("returns a promise that rejects", "return Promise.reject(new Error('no'))", ScriptThrew),
    Hostile("returns a promise that never settles", "return new Promise(() => {})", ScriptResultInvalid),
    Hostile("rejection that nothing handles", "Promise.reject(new Error('no')); return 1", ScriptThrew),
    Hostile("rejection without a reason", "Promise.reject(); return 1", ScriptThrew),
    Hostile("rejection with a proxy as reason",
            "Promise.reject(new Proxy(new Error('x'), { get() { throw 1 }, getPrototypeOf() { throw 2 } })); return 1", ScriptThrew),
    Hostile("rejections without end", "let n = 0; while (true) Promise.reject(n++)", MEMORY),
    Hostile("rejections handled without end", "while (true) Promise.reject(1).catch(() => 1)", MEMORY),
    Hostile("rejections where no stack is left",
            "function f() { Promise.reject(new Error('deep')); f() } try { f() } catch (e) {} return 1", ScriptThrew),
    Hostile("rejections where no memory is left", "const a = []; try { for (;;) a.push(new Array(1e5).fill(0)) } catch (e) { Promise.reject(e) }",
            (ScriptThrew, ScriptLimitExceeded)),
    Hostile("keeping of rejections, bent",
            "for (const name of Object.getOwnPropertyNames(Map.prototype)) try { Map.prototype[name] = () => { throw 1 } } catch (e) {}"
            "Object.defineProperty(Object.prototype, 'error', { set() {}, get() { return 5 } }); globalThis.Map = null;"
            "Promise.reject(new Error('x')); return 1", ScriptThrew),
    Hostile("what keeps rejections is not to be had", "return [typeof __trackRejection, Object.keys(globalThis).includes('__trackRejection')]",
            b'["undefined",false]'),
    Hostile("parameters made a cycle", "parameters.self = parameters", ScriptResultInvalid),
    Hostile("result that throws while written", "return { toJSON() { throw new Error('late') } }", ScriptResultInvalid),
    Hostile("unterminated comment", "/* no end", ScriptSyntaxError),
    Hostile("unterminated template", "`no end", ScriptSyntaxError),
    Hostile("NUL in the source", "return 1 \0 + 1", ScriptSyntaxError),
    Hostile("lone surrogate in the source", "return '\ud800'", ScriptSyntaxError),
    Hostile("source over the limit", "/*" + "x" * 1_000_001 + "*/", "source"),
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_a_hostile_script_is_contained(pool: SandboxPool, hostile: Hostile) -> None:
    # A value, an error of the script's own, a size that is refused: a busy machine may take its time.
    ends_by_itself = isinstance(hostile.outcome, bytes | type) or hostile.outcome in ("message", "source")
    begun = time.monotonic()
    outcome: object
    try:
        outcome = pool.run(
            hostile.source,
            mode="function_body",
            prelude=BRIDGE,
            host_calls=answer,
            limits=None if ends_by_itself else SHORT,
        ).value_json
    except ScriptFailed as failure:
        outcome = failure
    elapsed = time.monotonic() - begun

    assert elapsed < BOUND_SECONDS
    check_outcome(outcome, hostile.outcome)
    check_next_run(pool)


@pytest.mark.parametrize("name", ["replacing in a huge string", "array that grows", "typed array of two gigabytes"])
def test_a_worker_that_dies_of_memory_is_told_so_however_late_the_host_looks(
    pool: SandboxPool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused allocation can crash the engine before the next look at it: on a busy machine, most often."""
    monkeypatch.setattr("scripts.sandbox.run.Run._watch", lambda self, *, idle: None)
    (source,) = [hostile.source for hostile in HOSTILE if hostile.name == name]
    with pytest.raises(ScriptLimitExceeded) as caught:
        pool.run(source, mode="function_body", limits=replace(SHORT, wall_seconds=20, cpu_seconds=20))
    assert caught.value.limit == "memory"


def check_outcome(outcome: object, expected: object) -> None:
    if expected is None:  # any clean end will do
        return
    if isinstance(expected, bytes):
        assert outcome == expected
    elif isinstance(expected, str):
        if isinstance(outcome, ScriptThrew) and "throw" in expected:
            return
        assert isinstance(outcome, ScriptLimitExceeded), (repr(outcome), getattr(outcome, "__dict__", None))
        assert outcome.limit in expected.split()
    else:
        assert isinstance(outcome, expected), repr(outcome)  # type: ignore[arg-type]


def check_next_run(pool: SandboxPool) -> None:
    """An ordinary run works, in a context that shows nothing of the one before."""
    result = pool.run(
        "console.log('fine'); return [call('add', 1, 2), typeof x, [].toJSON === undefined, JSON.stringify({ a: [1] }),"
        " Object.keys(globalThis)]",
        mode="function_body",
        prelude=BRIDGE,
        host_calls=answer,
    )
    assert orjson.loads(result.value_json) == [3, "undefined", True, '{"a":[1]}', ["call"]]
    assert result.console == "fine"


def test_the_suite_is_as_large_as_promised() -> None:
    assert len({hostile.name for hostile in HOSTILE}) == len(HOSTILE) >= 60
