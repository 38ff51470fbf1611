"""Lines and columns of failures, in the author's source."""

from __future__ import annotations

import pytest

from scripts.sandbox.errors import ScriptFailed, ScriptSyntaxError, ScriptThrew
from scripts.sandbox.pool import Mode, SandboxPool

from .conftest import BRIDGE, answer

SYNTAX = [
    ("let x = ;", 1, 9),
    ("\n\n  foo bar", 3, 7),
    ("let a = 1;\nlet a = 2;", 2, 5),
    ("if (x {", 1, 7),
    ("f(1, 2", 1, 7),
    ("const o = { a: 1, b c };", 1, 21),
    ("x = 'open", 1, 5),
    ("for (let i = 0; i < 3; i++ {\n}", 1, 28),
    ("a === === b", 1, 7),
    ('foo "bar"', 1, 5),
    ("let let = 1", 1, 5),
    ("\tlet y = 08n;", 1, None),
    ("{ { {", 1, 6),
    ("class A { constructor() { super(); } }", 1, None),
]

THROWN = [
    ("null.x", 1, 6),
    ("let a;\nlet b = 1; a.b.c = b", 2, 14),
    ("\n\n   missing + 1", 3, 4),
    ("let a = 1;\nif (a) throw new Error('x')", 2, 8),
    ("function f() {\n  throw new TypeError('x')\n}\nf()", 2, 3),
    ("function f() { null.y }\n\nf()", 1, 21),
    ("const f = () => null.y;\n\n[1].map(f)", 1, 22),
    ("let a = 1;\n a()", 2, 2),
    ("const c = 1;\nc = 2", 2, 1),
    ("\n  JSON.parse('{')", 2, 3),
    ("\n  call('refuse')", 2, 3),
    ("\neval('let x = ;')", 2, 1),
    ("let a = 1; let b = 2; JSON.parse('{')", 1, None),
    ("for (let i = 0; i < 3; i++) JSON.parse('{');", 1, 1),
    ("class A {\n  m() {\n    this.x.y\n  }\n}\nnew A().m()", 3, 12),
]


@pytest.mark.parametrize("mode", ["script", "function_body"])
@pytest.mark.parametrize("source, line, column", SYNTAX)
def test_a_syntax_error_is_placed(pool: SandboxPool, mode: Mode, source: str, line: int | None, column: int) -> None:
    with pytest.raises(ScriptSyntaxError) as failure:
        pool.run(source, mode=mode, parameters={"p": 1})
    if line is not None:
        assert failure.value.line == line, failure.value.message
    if column is not None:
        assert failure.value.column == column, failure.value.message


@pytest.mark.parametrize("mode", ["script", "function_body"])
@pytest.mark.parametrize("source, line, column", THROWN)
def test_an_exception_is_placed(pool: SandboxPool, mode: Mode, source: str, line: int, column: int) -> None:
    with pytest.raises(ScriptThrew) as failure:
        pool.run(source, mode=mode, parameters={"p": 1}, prelude=BRIDGE, host_calls=answer)
    assert (failure.value.line, failure.value.column) == (line, column), (failure.value.message, failure.value.stack)


def test_the_stack_has_the_authors_lines_and_name_only(pool: SandboxPool) -> None:
    with pytest.raises(ScriptThrew) as failure:
        pool.run(
            "function f() {\n  call('refuse')\n}\nf()", source_name="Import orders", prelude=BRIDGE, host_calls=answer
        )
    assert failure.value.stack == "    at f (Import orders:2)\n    at <eval> (Import orders:4)"


def test_the_stack_names_a_function_that_throws_on_its_first_line(pool: SandboxPool) -> None:
    """The engine gives no line for such a frame."""
    with pytest.raises(ScriptThrew) as failure:
        pool.run("function inner() { null.a }\nfunction outer() {\n  inner()\n}\nouter()", source_name="s")
    assert failure.value.stack == "    at inner (s:1)\n    at outer (s:3)\n    at <eval> (s:5)"


def test_an_exception_in_a_promise_is_placed(pool: SandboxPool) -> None:
    with pytest.raises(ScriptThrew) as failure:
        pool.run("(async () => {\n  await null;\n  null.x\n})()")
    assert failure.value.line == 3


@pytest.mark.parametrize("mode", ["script", "function_body"])
def test_a_source_is_checked_without_being_run(pool: SandboxPool, mode: Mode) -> None:
    pool.check_syntax("for (;;);", mode=mode)
    with pytest.raises(ScriptSyntaxError) as failure:
        pool.check_syntax("\nfor (;;;);", mode=mode, parameter_names=("a",))
    assert (failure.value.line, failure.value.column) == (2, 8)


def test_what_only_a_body_may_say(pool: SandboxPool) -> None:
    pool.check_syntax("return 1", mode="function_body")
    with pytest.raises(ScriptSyntaxError):
        pool.check_syntax("return 1")
    with pytest.raises(ScriptSyntaxError):
        pool.check_syntax("}); (function () {", mode="function_body")


def test_a_huge_line_with_a_syntax_error_ends_in_time(pool: SandboxPool) -> None:
    with pytest.raises(ScriptFailed):
        pool.run("x = 1;" * 16_000 + "let = = 1")
    with pytest.raises(ScriptFailed):
        pool.run("x = 1;" * 160_000 + "let = = 1")
