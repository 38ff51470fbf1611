"""Arithmetic and rounding as SQL, on scaled integers (SQLite) and on numeric (PostgreSQL).

A filter must not fail because of one row: division by zero gives null on both (5.1.1.2.4 leaves integers to the
service), and PostgreSQL's integers are computed as numeric, which does not overflow. Row policies rely on this: the
database may evaluate a condition for rows that a policy hides, and an error would reveal them. `round` rounds half away
from zero (5.1.1.9.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from domain.query.base.bound import Bound, Call, Sort
from domain.query.sql.dialect import Dialect
from domain.query.sql.fragments import Sql, compose


class Operands(Protocol):
    """The compiler's interface for arithmetic (domain.query.sql.compiler.Compiler)."""

    @property
    def dialect(self) -> Dialect: ...

    def value(self, node: Bound) -> Sql:
        """An expression at the scale of its type."""
        ...

    def number(self, node: Bound, scale: int | None) -> Sql:
        """A number at the scale; None: as displayed."""
        ...


def shown(compiler: Operands, value: Sql) -> Sql:
    """A number without a fixed scale, rounded equally on both databases (reals)."""
    return compiler.dialect.function("real", Sort.NUMBER, value)


_SIGNS = {"add": "+", "sub": "-"}


def _wide(compiler: Operands, value: Sql) -> Sql:
    """An operand cast to a type that holds every result."""
    return value if compiler.dialect.scaled_decimals else compose("{0}::numeric", value)


def _sum(compiler: Operands, node: Call) -> Sql:
    left, right = (compiler.number(argument, node.type.scale) for argument in node.arguments)
    return compose(f"({{0}} {_SIGNS[node.name]} {{1}})", _wide(compiler, left), right)


def _product(compiler: Operands, node: Call) -> Sql:
    left, right = node.arguments
    if node.type.scale is None:
        return compose("({0} * {1})", _wide(compiler, compiler.number(left, None)), compiler.number(right, None))
    return compose("({0} * {1})", _wide(compiler, compiler.value(left)), compiler.value(right))


def _quotient(compiler: Operands, node: Call) -> Sql:
    if node.type.integer:
        whole = "({0} / NULLIF({1}, 0))" if compiler.dialect.scaled_decimals else "div({0}::numeric, NULLIF({1}, 0))"
        return compose(whole, *(compiler.value(each) for each in node.arguments))
    scales = [argument.type.scale for argument in node.arguments]
    # With one scale there is only one rounding division.
    scale = None if None in scales else max(each or 0 for each in scales)
    left, right = (compiler.number(argument, scale) for argument in node.arguments)
    if compiler.dialect.scaled_decimals:
        return compose("(CAST({0} AS REAL) / NULLIF({1}, 0))", left, right)
    return compose("({0}::numeric / NULLIF({1}, 0))", left, right)


def _remainder(compiler: Operands, node: Call) -> Sql:
    left, right = (compiler.number(argument, node.type.scale) for argument in node.arguments)
    if node.type.scale is None:
        left, right = shown(compiler, left), shown(compiler, right)
        if compiler.dialect.scaled_decimals:
            # SQLite's own operator truncates doubles to integers.
            quotient = shown(compiler, compose("({0} / NULLIF({1}, 0))", left, right))
            return compose("({0} - {1} * CAST({2} AS INTEGER))", left, right, quotient)
    return compose("({0} %% NULLIF({1}, 0))", _wide(compiler, left), right)


def _rounded(compiler: Operands, node: Call) -> Sql:
    (argument,) = node.arguments
    scale, value = argument.type.scale, compiler.value(argument)
    value = value if scale is not None else shown(compiler, value)
    if not compiler.dialect.scaled_decimals:
        return compose({"round": "round({0})", "floor": "floor({0})", "ceiling": "ceiling({0})"}[node.name], value)
    if scale is None:
        # floor and ceil are a compile-time option of SQLite.
        templates = {
            "round": "CAST(round({0}) AS INTEGER)",
            "floor": "(CAST({0} AS INTEGER) - ({0} < CAST({0} AS INTEGER)))",
            "ceiling": "(CAST({0} AS INTEGER) + ({0} > CAST({0} AS INTEGER)))",
        }
        return compose(templates[node.name], value)
    if scale == 0:
        return value
    unit = 10**scale
    half = unit // 2
    templates = {
        "round": f"(CASE WHEN {{0}} < 0 THEN -((-({{0}}) + {half}) / {unit}) ELSE ({{0}} + {half}) / {unit} END)",
        "floor": f"(({{0}} - (({{0}} %% {unit}) + {unit}) %% {unit}) / {unit})",
        "ceiling": f"(({{0}} + ((-({{0}}) %% {unit}) + {unit}) %% {unit}) / {unit})",
    }
    return compose(templates[node.name], value)


def _rounded_to(compiler: Operands, node: Call) -> Sql:
    """Round half away from zero to the scale of the node's type, which is smaller than the argument's."""
    (argument,) = node.arguments
    places, scale, value = node.type.scale or 0, argument.type.scale, compiler.value(argument)
    if scale is None:
        return compiler.dialect.function("real_scaled", Sort.NUMBER, value, Sql(str(places)))
    if not compiler.dialect.scaled_decimals:
        return compose(f"round(({{0}})::numeric, {places})", value)
    unit = 10 ** (scale - places)
    half = unit // 2
    return compose(
        f"(CASE WHEN {{0}} < 0 THEN -((-({{0}}) + {half}) / {unit}) ELSE ({{0}} + {half}) / {unit} END)", value
    )


def _truncated(compiler: Operands, node: Call) -> Sql:
    (argument,) = node.arguments
    value = compiler.number(argument, 0 if argument.type.scale is not None else None)
    value = value if argument.type.scale is not None else shown(compiler, value)
    return compose("CAST({0} AS INTEGER)" if compiler.dialect.scaled_decimals else "trunc({0}::numeric)", value)


NUMERIC_CALLS: Mapping[str, Callable[[Operands, Call], Sql]] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "div": _quotient,
    "divby": _quotient,
    "mod": _remainder,
    "round": _rounded,
    "round_to": _rounded_to,
    "floor": _rounded,
    "ceiling": _rounded,
    "truncate": _truncated,
}
