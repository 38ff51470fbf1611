"""Random expressions: the database and the evaluation on records agree, on every database (spec 10.1)."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from domain.dataset.lookups.calculated_values import RecordEnvironment
from domain.dataset.records.record import Record
from domain.model.calculated_attributes import Definition
from domain.model.registry import repositories
from domain.query.base.access import Access
from domain.query.base.bound import Bound, new_root
from domain.query.base.representation import ShapeKey
from domain.query.base.scope import entity_scope
from domain.query.bind.binder import Binder
from domain.query.plan.planner import Planner
from domain.query.run.evaluation import canonical, evaluate
from domain.query.run.execute import Statement
from domain.query.run.row_json import canonical_decoder
from domain.query.run.scripts import ScriptRows
from domain.query.sql.compiler import Compiler
from domain.query.sql.fragments import Run, select_from
from domain.syntax.ast import NO_OPTIONS
from tests.domain.calculations.conftest import Orders
from tests.rules.cast import ORDERS, World, dataset
from tests.support.calculations import parse_rows

NUMBERS = ("CONST:0", "CONST:-2.5", "CONST:7", "CONST:0.125", "CONST:NULL")
TEXTS = ("ATTRIB:DocumentNo", "ATTRIB:DocumentNotes", "CONST:''", "CONST:'o'", "CONST:'12.5'", "CONST:NULL")
DATES = ("ATTRIB:DocumentDate", "CONST:2024-02-29", "CONST:2023-01-31", "CONST:NULL")
#: operator → kinds of its parameters, kind of its result; n number, i whole number, t text, d date, b condition
OPERATORS = {
    "ADD": ("nn", "n"), "MULTIPLY": ("nn", "n"), "DIVIDE": ("nn", "n"), "CEILING": ("n", "n"), "FLOOR": ("n", "n"),
    "ROUND": ("n1", "n"), "COUNT": ("L", "n"), "LEN": ("t", "n"), "POS": ("tt", "n"), "DATEDIFF": ("ddu", "n"),
    "DATESPAN": ("ddu", "n"), "CONCAT": ("tt", "t"), "REPLACE": ("ttt", "t"), "TOUPPER": ("t", "t"),
    "EQUAL": ("nn", "b"), "GT": ("dd", "b"), "LTE": ("tt", "b"), "AND": ("bb", "b"), "OR": ("bbb", "b"),
    "NOT": ("b", "b"), "LIKE": ("tm", "b"), "IIF": ("bnn", "n"), "IFERROR": ("nn", "n"), "SUM": ("Ln", "n"),
}  # fmt: skip


@st.composite
def notations(draw: Any) -> str:
    """A definition of up to a dozen rows."""
    rows: list[str] = []

    def parameter(kind: str, depth: int) -> str:
        match kind:
            case "1":
                return f"CONST:{draw(st.integers(0, 4))}"
            case "u":
                return f"CONST:{draw(st.sampled_from(('Days', 'Months', 'Years')))}"
            case "m":
                return f"CONST:{draw(st.sampled_from(('%', '_-%', '%o%', 'none', 'A_009')))!r}"
            case "L":
                return "CHILD:Lines"
        leaves = {"n": NUMBERS, "t": TEXTS, "d": DATES, "b": ("CONST:true", "CONST:false", "CONST:NULL")}[kind]
        if depth > 3 or kind == "d" or draw(st.integers(0, 2)) == 0:
            return str(draw(st.sampled_from(leaves)))
        return f"EXP:{row(kind, depth + 1)}"

    def row(kind: str, depth: int) -> int:
        name = draw(st.sampled_from([name for name, (_, result) in OPERATORS.items() if result == kind]))
        number = 10 * (len(rows) + 1)
        rows.append("")
        # The value of a list is evaluated on its rows, which have other attributes.
        inner = {"SUM": "CONST:1.5"}.get(name)
        kinds = OPERATORS[name][0]
        given = [inner if inner and kind == "n" else parameter(kind, depth) for kind in kinds]
        rows[number // 10 - 1] = f"{number}: {name} {' '.join(given)}"
        return number

    row(draw(st.sampled_from("ntb")), 0)
    return "\n".join(rows)


def test_random_expressions(orders: Orders, world: World) -> None:
    ds = dataset(world.context)
    records = [ds.load(ORDERS, id) for id in (orders.full, orders.empty)]

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(notations())
    def agree(notation: str) -> None:
        rows = parse_rows(notation)
        definition = Definition(ORDERS, "R", {}, {}, 10, rows)
        source = new_root(repositories[ORDERS])
        value = Binder(Access(None), pending=(definition,)).calculated(source, "R")
        assert value is not None
        wanted = [value.bound, *([value.failed_row] if value.failed_row is not None else [])]
        for record in records:
            assert isinstance(record, Record)
            env = RecordEnvironment(((source, record),), ScriptRows())
            in_python = [canonical(evaluate(each, env), each.type) for each in wanted]
            assert in_python == by_database(wanted, source, record, world), [str(row) for row in rows]

    agree()


def by_database(wanted: list[Bound], source: Any, record: Record, world: World) -> list[Any]:
    """The values that one SELECT gives."""
    planner = Planner(Access(None), ShapeKey(), {})
    block = planner.block(source)
    compiler = Compiler(block)
    key = planner.where(source, NO_OPTIONS, entity_scope(source), ("Id",))
    columns = [planner.dialect.output(compiler.value(each), each.type) for each in wanted]
    predicates = [compiler.predicate(each) for each in key]
    statement = Statement.of(select_from(columns, block.from_sql(), predicates), planner.dialect)
    (row,) = statement.fetch(Run((), world.context, key=record.id))
    return [
        None if cell is None else canonical_decoder(each, planner.dialect)(cell)
        for cell, each in zip(row, wanted, strict=True)
    ]
