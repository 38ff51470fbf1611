"""Every operator with a null and with a failed row in each of its parameters (spec 10.1), in both evaluations.

Null goes through arithmetic and text, comparison with null is false; a failure goes through whatever needs the value.
"""

from __future__ import annotations

from typing import Any

from domain.dataset.lookups.calculated_values import RecordEnvironment
from domain.entities.systems_bpm import EXPRESSION_OPERATOR
from domain.model.calculated_attributes import Definition
from domain.model.registry import repositories
from domain.query.base.access import Access
from domain.query.base.bound import new_root, python_operator
from domain.query.bind.binder import Binder
from domain.query.run.evaluation import canonical, evaluate
from domain.query.run.scripts import ScriptRows
from tests.domain.calculations.conftest import FAILED, Orders
from tests.domain.calculations.test_operators import plain
from tests.domain.calculations.test_same_in_both import by_database
from tests.rules.cast import ORDERS, World, dataset
from tests.support.calculations import parse_rows

#: Kind of a parameter → a row that gives null, a row that fails, a value. w: whole numbers
KINDS = {
    "n": ("DIVIDE CONST:NULL CONST:1", "DIVIDE CONST:1 CONST:0", "CONST:2"),
    "w": ("LEN ATTRIB:VoidReason", "CONVERT ATTRIB:DocumentNo CONST:System.Int32", "CONST:1"),
    "t": ("GETVALUE ATTRIB:VoidReason", "CONVERT EXP:98 CONST:System.String", "CONST:'a1'"),
    "d": ("ADDDAYS CONST:NULL CONST:1", "ADDDAYS ATTRIB:DocumentDate CONST:-9999999", "CONST:2024-02-29"),
    "b": ("NOT CONST:NULL", "GT EXP:98 CONST:1", "CONST:true"),
}
#: operator → its parameters, a letter each of KINDS or a constant; its results for a null in each of the letters
OPERATORS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "ADD": ("n n", (None, None)), "MULTIPLY": ("n n", (None, None)), "DIVIDE": ("n n", (None, None)),
    "ROUND": ("n CONST:1", (None,)), "CEILING": ("n", (None,)), "FLOOR": ("n", (None,)),
    "EQUAL": ("n n", (False, False)), "GT": ("n n", (False, False)), "GTE": ("d d", (False, False)),
    "LT": ("t t", (False, False)), "LTE": ("n n", (False, False)), "IN": ("n CONST:2", (False,)),
    "NOT": ("b", (None,)), "LIKE": ("t CONST:'a%'", (False,)), "REGEX": ("t CONST:'a'", (False,)),
    "CONCAT": ("t t t", (None, None, None)), "LEFT": ("t w", (None, None)), "RIGHT": ("t w", (None, None)),
    "LEN": ("t", (None,)), "SUBSTRING": ("t w w", (None, None, None)), "POS": ("t t", (None, None)),
    "REPLACE": ("t t t", (None, None, None)), "TOLOWER": ("t", (None,)), "TOUPPER": ("t", (None,)),
    "INCNUM": ("t", (None,)), "FORMATSTRING": ("n CONST:'N1'", (None,)), "GETVALUE": ("n", (None,)),
    "ADDDAYS": ("d w", (None, None)), "DATEDIFF": ("d d CONST:Days", (None, None)),
    "DATESPAN": ("d d CONST:Months", (None, None)), "CAST": ("n CONST:System.Int32", (None,)),
    "CONVERT": ("n CONST:System.String", (None,)), "AND": ("b b", (None, None)),
    "IIF": ("b n n", (2, None, 2)), "IFERROR": ("n n", (None, 2)), "OR": ("b b", (True, True)),
}  # fmt: skip
#: Where a failure does not reach the result: (operator, place of the parameter) → result.
KEPT = {("IIF", 2): 2, ("IFERROR", 0): 2, ("IFERROR", 1): 2}
#: On lists and objects: covered by the table of test_operators.
OF_LISTS = {"COUNT", "SUM", "FILTER", "SORT", "FIRST", "LIST", "SELECT", "WHERE", "TOP", "ORDERBY", "GETOBJVALUE"}
OTHERS = {"TODAY", "INTERPOLATE"}


def results(notation: str, orders: Orders, world: World) -> Any:
    """The value, or FAILED; the same in the database as on the record."""
    definition = Definition(ORDERS, "R", {}, {}, 10, parse_rows(notation))
    source = new_root(repositories[ORDERS])
    value = Binder(Access(None), pending=(definition,)).calculated(source, "R")
    assert value is not None
    wanted = [value.bound, *([value.failed_row] if value.failed_row is not None else [])]
    record = dataset(world.context).load(ORDERS, orders.full)
    assert record is not None
    env = RecordEnvironment(((source, record),), ScriptRows())
    found = [canonical(evaluate(each, env), each.type) for each in wanted]
    if python_operator(tuple(wanted)) is None:
        assert by_database(wanted, source, record, world) == found, notation
    return FAILED if len(found) > 1 and found[1] is not None else plain(found[0])


def test_every_operator_has_a_row() -> None:
    assert set(EXPRESSION_OPERATOR.members) == {*OPERATORS, *OF_LISTS, *OTHERS}


def test_nulls_and_failures(orders: Orders, world: World) -> None:
    for operator, (parameters, with_null) in OPERATORS.items():
        given = parameters.split(" ")
        for place, kind in enumerate(given):
            if kind not in KINDS:
                continue
            null, failing, _ = KINDS[kind]
            others = [KINDS[each][2] if each in KINDS else each for each in given]
            others[place] = "EXP:99"
            row = f"10: {operator} {' '.join(others)}\n98: DIVIDE CONST:1 CONST:0\n99: "
            assert results(row + null, orders, world) == with_null[place], (operator, place, "null")
            expected = KEPT.get((operator, place), FAILED)
            if operator in ("AND", "OR"):
                continue  # a decisive operand makes the other irrelevant: test_same_in_both compares them
            assert results(row + failing, orders, world) == expected, (operator, place, "failure")
