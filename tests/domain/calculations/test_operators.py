"""Every operator in the notation of spec 10.1, evaluated by the database and on records, with the same result."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from domain.entities.systems_bpm import EXPRESSION_OPERATOR
from tests.domain.calculations.conftest import FAILED, Orders, by_record
from tests.rules.cast import World, dataset

#: notation, value of the order with lines, value of the empty order
CASES: tuple[tuple[str, Any, Any], ...] = (
    # numbers
    ("10: ADD CONST:1 CONST:2.5", 3.5, 3.5),
    ("10: ADD CONST:1 CONST:NULL", None, None),
    ("10: ADD EXP:20 CONST:1\n20: SUM CHILD:Lines ATTRIB:Quantity", 9, 1),
    ("10: MULTIPLY EXP:20 CONST:-1.5\n20: SUM CHILD:Lines ATTRIB:QuantityValue", -12, 0),
    ("10: MULTIPLY CONST:2 CONST:NULL", None, None),
    ("10: DIVIDE CONST:7 CONST:2", 3.5, 3.5),
    ("10: DIVIDE CONST:1 EXP:20\n20: COUNT CHILD:Lines", 0.333333333333, FAILED),
    ("10: DIVIDE CONST:NULL CONST:2", None, None),
    ("10: ROUND CONST:2.345 CONST:2", 2.35, 2.35),
    ("10: ROUND CONST:-2.5", -3, -3),
    ("10: ROUND EXP:20 CONST:2\n20: DIVIDE CONST:2 CONST:3", 0.67, 0.67),
    ("10: ROUND CONST:5 CONST:2", 5, 5),
    ("10: ROUND CONST:NULL", None, None),
    ("10: CEILING CONST:-1.5", -1, -1),
    ("10: CEILING EXP:20\n20: DIVIDE CONST:7 CONST:2", 4, 4),
    ("10: FLOOR CONST:-1.5", -2, -2),
    ("10: FLOOR CONST:NULL", None, None),
    ("10: SUM CHILD:Lines EXP:20\n20: MULTIPLY ATTRIB:QuantityValue ATTRIB:UnitPriceValue", 121, 0),
    ("10: SUM CHILD:Lines EXP:20\n20: DIVIDE CONST:1 ATTRIB:UnitPriceValue", FAILED, 0),
    ("10: COUNT CHILD:Lines", 3, 0),
    ("10: COUNT EXP:20\n20: FILTER CHILD:Lines EXP:30\n30: GT ATTRIB:Quantity CONST:1", 2, 0),
    # comparison and logic
    ("10: EQUAL ATTRIB:DocumentNo CONST:'A-009'", True, False),
    ("10: EQUALS ATTRIB:DocumentNotes CONST:NULL", False, True),
    ("10: EQUAL ATTRIB:DocumentNotes ATTRIB:DocumentNotes", True, False),
    ("10: EQUAL REF:Customer REF:Customer", True, True),
    ("10: EQUAL ATTRIB:State CONST:New", True, True),
    ("10: GT ATTRIB:DocumentDate CONST:2024-01-01", True, False),
    ("10: GT ATTRIB:DocumentNotes CONST:'A'", True, False),
    ("10: GTE ATTRIB:State CONST:Released", False, False),
    ("10: GTE ATTRIB:DocumentNotes ATTRIB:DocumentNotes", True, False),
    ("10: GTE CONST:NULL CONST:NULL", False, False),
    ("10: LT ATTRIB:DocumentDate SYS:Today", True, True),
    ("10: LT ATTRIB:DocumentNotes CONST:NULL", False, False),
    ("10: LTE EXP:20 CONST:3\n20: COUNT CHILD:Lines", True, True),
    ("10: AND EXP:20 CONST:true\n20: EQUAL CONST:1 CONST:1", True, True),
    ("10: AND EXP:20 CONST:false CONST:NULL\n20: EQUAL CONST:1 CONST:1", False, False),
    ("10: AND CONST:true CONST:NULL", None, None),
    ("10: OR CONST:NULL EXP:20\n20: EQUAL ATTRIB:DocumentNotes CONST:NULL", None, True),
    ("10: NOT EXP:20\n20: EQUAL ATTRIB:DocumentNotes CONST:NULL", True, False),
    ("10: NOT CONST:NULL", None, None),
    ("10: IIF EXP:20 CONST:'some' CONST:'none'\n20: GT EXP:30 CONST:0\n30: COUNT CHILD:Lines", "some", "none"),
    ("10: IIF CONST:NULL CONST:1 CONST:2.5", 2.5, 2.5),
    ("10: IIF EXP:20 EXP:30 CONST:0\n20: GT EXP:40 CONST:0\n30: DIVIDE CONST:6 EXP:40\n40: COUNT CHILD:Lines", 2, 0),
    ("10: IIF EXP:20 CONST:NULL ATTRIB:DocumentDate\n20: EQUAL ATTRIB:DocumentNotes CONST:NULL", "2024-02-29", None),
    ("10: IFERROR EXP:20 CONST:-1\n20: DIVIDE CONST:6 EXP:30\n30: COUNT CHILD:Lines", 2, -1),
    ("10: IFERROR ATTRIB:DocumentNotes CONST:'x'", "Hello World", None),
    ("10: IFERROR EXP:20 EXP:20\n20: DIVIDE CONST:6 EXP:30\n30: COUNT CHILD:Lines", 2, FAILED),
    ("10: IN ATTRIB:DocumentNo CONST:'x', 'A-009'", True, False),
    ("10: IN ATTRIB:DocumentNotes CONST:'x'", False, False),
    ("10: IN EXP:20 CONST:3\n20: COUNT CHILD:Lines", True, False),
    ("10: IN ATTRIB:CustomerId REPO:Crm.Sales.Customers", True, True),
    ("10: LIKE ATTRIB:DocumentNotes CONST:'hello%'", True, False),
    ("10: LIKE ATTRIB:DocumentNo CONST:'_-%9'", True, False),
    ("10: LIKE ATTRIB:DocumentNo CONST:'a'", False, False),
    ("10: REGEX ATTRIB:DocumentNo CONST:'^A-[0-9]+$'", True, False),
    ("10: REGEX ATTRIB:DocumentNotes CONST:'o'", True, False),
    # text
    ("10: CONCAT ATTRIB:DocumentNo CONST:' / ' EXP:20\n20: COUNT CHILD:Lines", "A-009 / 3", "none / 0"),
    ("10: CONCAT ATTRIB:DocumentNotes CONST:'!'", "Hello World!", None),
    ("10: CONCAT CONST:true CONST:2.50", "true2.5", "true2.5"),
    ("10: CONCAT REF:Customer.Party CONST:''", "Buyers & Sons", "Buyers & Sons"),
    ("10: LEFT ATTRIB:DocumentNotes CONST:4", "Hell", None),
    ("10: LEFT CONST:'abc' CONST:-1", "", ""),
    ("10: RIGHT ATTRIB:DocumentNo CONST:3", "009", "one"),
    ("10: RIGHT CONST:'abc' CONST:9", "abc", "abc"),
    ("10: LEN ATTRIB:DocumentNotes", 11, None),
    ("10: SUBSTRING ATTRIB:DocumentNo CONST:1 CONST:2", "-0", "on"),
    ("10: SUBSTRING ATTRIB:DocumentNo CONST:-5 CONST:2", "A-", "no"),
    ("10: POS CONST:'o' ATTRIB:DocumentNotes", 4, None),
    ("10: POS CONST:'z' ATTRIB:DocumentNo", -1, -1),
    ("10: REPLACE ATTRIB:DocumentNo CONST:'n' CONST:'N'", "A-009", "NoNe"),
    ("10: REPLACE ATTRIB:DocumentNo CONST:'' CONST:'N'", "A-009", "none"),
    ("10: TOLOWER ATTRIB:DocumentNotes", "hello world", None),
    ("10: TOUPPER ATTRIB:DocumentNo", "A-009", "NONE"),
    ("10: INCNUM ATTRIB:DocumentNo", "A-010", FAILED),
    ("10: INCNUM ATTRIB:DocumentNotes", FAILED, None),
    ("10: IFERROR EXP:20 CONST:'?'\n20: INCNUM ATTRIB:DocumentNo", "A-010", "?"),
    ("10: FORMATSTRING EXP:20 CONST:'N2'\n20: SUM CHILD:Lines ATTRIB:Quantity", "8.00", "0.00"),
    ("10: FORMATSTRING ATTRIB:DocumentDate CONST:'dd.MM.yyyy'", "29.02.2024", "31.12.2023"),
    ("10: INTERPOLATE CONST:'No {DocumentNo} of {Customer.Party.PartyName}: {DocumentNotes}'",
     "No A-009 of Buyers & Sons: Hello World", "No none of Buyers & Sons: "),
    ("10: INTERPOLATE CONST:'{DocumentDate:yyyy}' REF:Customer", FAILED, FAILED),
    ("10: INTERPOLATE CONST:'{Number}' REF:Customer", "C1", "C1"),
    # dates
    ("10: EQUAL EXP:20 SYS:Today\n20: TODAY", True, True),
    ("10: ADDDAYS ATTRIB:DocumentDate CONST:1", "2024-03-01", "2024-01-01"),
    ("10: ADDDAYS ATTRIB:DocumentDate CONST:-9999999", FAILED, FAILED),
    ("10: ADDDAYS CONST:NULL CONST:1", None, None),
    ("10: DATEDIFF ATTRIB:DocumentDate CONST:2024-03-01 CONST:Days", 1, 61),
    ("10: DATEDIFF ATTRIB:DocumentDate CONST:2024-03-01 CONST:Months", 1, 3),
    ("10: DATEDIFF ATTRIB:DocumentDate CONST:2024-03-01 CONST:Years", 0, 1),
    ("10: DATESPAN ATTRIB:DocumentDate CONST:2024-03-01 CONST:Days", 1, 61),
    ("10: DATESPAN ATTRIB:DocumentDate CONST:2024-03-28 CONST:Months", 0, 2),
    ("10: DATESPAN ATTRIB:DocumentDate CONST:2022-12-31 CONST:Years", -1, -1),
    ("10: DATESPAN ATTRIB:DocumentDate CONST:NULL CONST:Years", None, None),
    # types
    ("10: CAST CONST:2.7 CONST:System.Int32", 2, 2),
    ("10: CONVERT CONST:2.7 CONST:System.Int32", 3, 3),
    ("10: CONVERT ATTRIB:DocumentNo CONST:System.Int32", FAILED, FAILED),
    ("10: CONVERT CONST:'12.5' CONST:System.Decimal", 12.5, 12.5),
    ("10: CONVERT ATTRIB:State CONST:System.Int32", 0, 0),
    ("10: CONVERT CONST:true CONST:System.Double", 1, 1),
    ("10: CONVERT EXP:20 CONST:System.String\n20: COUNT CHILD:Lines", "3", "0"),
    ("10: CONVERT CONST:'2024-05-06' CONST:System.DateTime", "2024-05-06T00:00:00Z", "2024-05-06T00:00:00Z"),
    ("10: CONVERT ATTRIB:DocumentNotes CONST:System.DateTime", FAILED, None),
    ("10: CONVERT CONST:'00000000-0000-7000-8000-00000000000A' CONST:System.Guid",
     "00000000-0000-7000-8000-00000000000a", "00000000-0000-7000-8000-00000000000a"),
    ("10: CONVERT ATTRIB:DocumentNo CONST:System.Guid", FAILED, FAILED),
    ("10: CONVERT CONST:'True' CONST:System.Boolean", True, True),
    ("10: CONVERT EXP:20 CONST:System.Boolean\n20: COUNT CHILD:Lines", True, False),
    ("10: CAST CONST:'released' CONST:General.Documents.DocumentState", "Released", "Released"),
    ("10: CAST EXP:20 CONST:General.Documents.DocumentState\n20: COUNT CHILD:Lines", FAILED, "New"),
    # objects and lists
    ("10: GETVALUE ATTRIB:Customer.Party.PartyName", "Buyers & Sons", "Buyers & Sons"),
    ("10: GETOBJVALUE REF:Customer ATTRIB:Number", "C1", "C1"),
    ("10: GETOBJVALUE REF:SalesPerson ATTRIB:Person.PartyName", None, None),
    ("10: GETOBJVALUE EXP:20 ATTRIB:Notes\n20: FIRST EXP:30\n30: SORT CHILD:Lines ATTRIB:UnitPriceValue CONST:DESC",
     "a", None),
    ("10: EQUAL EXP:20 CONST:NULL\n20: FIRST CHILD:Lines", False, True),
    ("10: LIST CHILD:Lines ATTRIB:Notes", "b, a", None),
    ("10: LIST EXP:20 ATTRIB:Notes CONST:'+'\n20: SORT CHILD:Lines ATTRIB:Notes", "a+b", None),
    ("10: LIST CHILD:Lines EXP:20\n20: FORMATSTRING ATTRIB:UnitPriceValue CONST:'N1'", "10.5, 100.0, 0.0", None),
    ("10: LIST CHILD:Lines EXP:20 CONST:'|'\n20: CONCAT EXP:30 CONST:'/' ATTRIB:LineNo\n"
     "30: GETOBJVALUE INPUT:10 ATTRIB:DocumentNo", "A-009/10|A-009/20|A-009/30", None),
    # Lists within lists: the order and the line, each by the row that has it as its input.
    ("10: LIST CHILD:Lines EXP:20 CONST:'|'\n20: COUNT EXP:30\n30: SELECT REPO:Crm.Sales.SalesOrderLines EXP:40\n"
     "40: WHERE EXP:50 EXP:60\n50: EQUAL ATTRIB:SalesOrderId EXP:51\n51: GETOBJVALUE INPUT:10 ATTRIB:Id\n"
     "60: LTE ATTRIB:LineNo EXP:61\n61: GETOBJVALUE INPUT:20 ATTRIB:LineNo", "1|2|3", None),
    ("10: COUNT EXP:20\n20: SELECT REPO:Crm.Sales.SalesOrders EXP:30\n30: WHERE EXP:40\n"
     "40: EQUAL ATTRIB:CustomerId EXP:50\n50: GETOBJVALUE INPUT:10 ATTRIB:CustomerId", 2, 2),
    ("10: LIST EXP:20 ATTRIB:DocumentNo\n20: SELECT QUERY:Crm.Sales.SalesOrders EXP:30\n"
     "30: TOP CONST:1 EXP:40\n40: ORDERBY ATTRIB:DocumentDate CONST:DESC EXP:50\n50: WHERE EXP:60 EXP:70\n"
     "60: EQUAL ATTRIB:State CONST:New\n70: LT ATTRIB:DocumentDate SYS:Today", "A-009", "A-009"),
    ("10: EQUAL SYS:EnterpriseCompanyId CONST:NULL", True, True),
    ("10: AND EXP:20 EXP:30\n20: GT SYS:Now ATTRIB:DocumentDate\n30: GT SYS:UtcNow ATTRIB:DocumentDate", True, True),
)  # fmt: skip

INVALID = {"10: INTERPOLATE CONST:'{DocumentDate:yyyy}' REF:Customer"}
VALID = [case for case in CASES if case[0] not in INVALID]


def plain(value: Any) -> Any:
    """A canonical value as JSON has it."""
    match value:
        case Decimal():
            return float(value) if value != value.to_integral_value() else int(value)
        case datetime.datetime():
            return value.replace(tzinfo=None).isoformat() + "Z"
        case datetime.date():
            return value.isoformat()
    return value


def nearly(value: Any) -> Any:
    return pytest.approx(value) if isinstance(value, float) else value


@pytest.mark.parametrize("notation, full, empty", VALID, ids=[case[0].replace("\n", " ") for case in VALID])
def test_database_and_records_give_the_same(orders: Orders, world: World, notation: str, full: Any, empty: Any) -> None:
    name = orders.define(notation)
    assert orders.read(name, orders.full) == nearly(full)
    assert orders.read(name, orders.empty) == nearly(empty)
    ds = dataset(world.context)
    assert plain(by_record(ds, orders.full, name)) == nearly(full)
    assert plain(by_record(ds, orders.empty, name)) == nearly(empty)


def test_every_operator_of_the_model_has_a_case() -> None:
    written = " ".join(notation for notation, _, _ in VALID)
    assert [name for name in EXPRESSION_OPERATOR.members if f": {name} " not in f"{written} "] == []
