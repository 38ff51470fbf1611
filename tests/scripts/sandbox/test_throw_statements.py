"""Values that are no Errors have a position when they are thrown; scripts stay what they are."""

from __future__ import annotations

import time

import pytest

from scripts.sandbox.errors import ScriptFailed, ScriptThrew
from scripts.sandbox.pool import Mode, SandboxPool
from scripts.sandbox.throw_statements import SOURCE_MAX_CHARS, marked, throw_statements
from tests.support.measuring import slowness

THROWN = [
    ('throw "x"', "x", 1, 1),
    ('let a = 1;\n  if (a) throw "x"; else throw "y"', "x", 2, 10),
    ('let a = 0;\n  if (a) throw "x"; else throw "y"', "y", 2, 26),
    ("function f() { throw 42 }\n\nf()", "42", 1, 16),
    ("throw {a: 1}", '{"a":1}', 1, 1),
    ("throw undefined", "undefined", 1, 1),
    ("\nthrow(7)", "7", 2, 1),
    ("throw/x/.source", "x", 1, 1),
    ("const s = 'throw 1'; // throw 2\n/* throw 3 */ throw `t${'throw 4'}`", "tthrow 4", 2, 15),
    ("`${(() => { throw 'in' })()}`", "in", 1, 13),
    ("const r = 4 / 2 / 1, q = /throw [/] 'x/; throw 'after'", "after", 1, 42),
    ("if (true) /throw '/.test('x'); throw 'b'", "b", 1, 32),
    ("try { throw 'a' } catch (e) { throw e }", "a", 1, 31),
    ("try { throw 'a' } finally { 1 }", "a", 1, 7),
    ("throw 1, 'last'", "last", None, None),
    ("const o = { throw() { throw 'm' } };\no.throw()", "m", 1, 23),
    ("const o = { throw: 1, get x() { throw 'g' } };\no.throw; o.x", "g", 1, 33),
    ("class A { throw(a) { return a } go() { throw (this.throw('c')) } }\nnew A().go()", "c", 1, 40),
    ("function* g() { try { yield 1 } catch (e) { throw 'again' } }\nconst i = g(); i.next(); i.throw('x')",
     "again", 1, 45),
    ("async function f() {\n  throw 'later'\n}\nf(); 1", "later", 2, 3),
    ("async function f() {\n  await null; throw 'later'\n}\nf()", "later", 2, 15),
    ("1;\n  Promise.reject('no'); 1", "no", 2, 3),
    ("Promise.reject('no')", "no", 1, 1),
    ("class Odd {}\n throw new Odd()", "{}", 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["script", "function_body"])
@pytest.mark.parametrize("source, message, line, column", THROWN)
def test_a_value_is_placed(
    pool: SandboxPool, mode: Mode, source: str, message: str, line: int | None, column: int | None
) -> None:
    # What a body does not return is no promise that anybody waits for, yet its rejection is told alike.
    with pytest.raises(ScriptThrew) as failure:
        pool.run(source, mode=mode)
    found = failure.value
    assert (found.message, found.line, found.column) == (message, line, column)


@pytest.mark.parametrize(
    "source",
    [
        "throw\n1",
        "throw",
        "throw;",
        "throw )",
        "throw 1 2",
        "const throw = 1",
        "/* throw 1",
        "'throw 1",
        "`throw ${",
        "throw /* c */ 1",
        "throw // c\n1",
        "<!-- throw 'a' it's\nthrow 'b'",
        "x = a++ / 2; throw 'b' /1",
    ],
)
def test_a_source_fails_as_it_would_unmarked(pool: SandboxPool, source: str) -> None:
    with pytest.raises(ScriptFailed) as failure:
        pool.run(source)
    if isinstance(failure.value, ScriptThrew):
        pool.check_syntax(source)
        return
    with pytest.raises(ScriptFailed) as unmarked:  # a source that is only checked has no marks
        pool.check_syntax(source)
    found, wanted = failure.value, unmarked.value
    assert (found.message, found.line, found.column) == (wanted.message, wanted.line, wanted.column)


def test_what_a_script_throws_and_catches_is_the_value(pool: SandboxPool) -> None:
    source = """
        const seen = [];
        for (const value of ["x", 1, null, undefined, {a: 1}]) try { throw value } catch (e) { seen.push(e === value) }
        try { throw (1, 2) } catch (e) { seen.push(e === 2) }
        try { throw 1, 3 } catch (e) { seen.push(e === 3) }
        try { throw () => 5 } catch (e) { seen.push(e() === 5) }
        let a; try { throw a = 4 } catch (e) { seen.push(e === 4 && a === 4) }
        return seen;
    """
    result = pool.run(source, mode="function_body")
    assert result.value_json == b"[" + b",".join([b"true"] * 9) + b"]"


@pytest.mark.parametrize(
    "text",
    ["throw(", "throw (x) ", "throw /* ", "throw '", "throw`${", "throw /[", "throw a /*", 'throw "\\', "throw x "],
)
def test_a_long_source_is_scanned_in_little_time(text: str) -> None:
    source = text * (SOURCE_MAX_CHARS // len(text))
    begun = time.process_time()
    marked(source, throw_statements(source))
    assert time.process_time() - begun < 2 * slowness()


def test_a_longer_source_is_not_scanned() -> None:
    assert throw_statements("throw 1;" * SOURCE_MAX_CHARS) == []
