"""Calculated attributes are checked when they are saved: the row and the reason (spec 10.1)."""

from __future__ import annotations

import json

import pytest

from domain.model.custom_properties import CACHE_VERSION
from domain.model.registry import repositories
from foundation import cache_versions
from tests.domain.calculations.conftest import ORDER_SET, SET, Orders, body, refused
from tests.rules.cast import PRODUCTS, World
from tests.support.api import Api

pytestmark = pytest.mark.once

REFUSED = (
    ("10: ADD CONST:1", "row 10: ADD needs parameters: 2; it has 1"),
    ("10: ADD CONST:1 EXP:20", "row 20: there is no such row"),
    ("10: ADD CONST:1 EXP:10", "row 10: the row refers to itself"),
    ("10: ADD CONST:1 EXP:20\n20: ADD EXP:10 CONST:1", "row 10: the row refers to itself"),
    ("10: ADD CONST:1 CONST:'a'", "row 10: parameter 2 must be: a number; CONST:'a' is Edm.String"),
    ("10: GETVALUE CONST:NULL", "row 10: its type cannot be determined"),
    ("10: FILTER CHILD:Lines CONST:true", "row 10: its result is no single value"),
    ("10: GETVALUE ATTRIB:DocumentNumber", "row 10: Crm.Sales.SalesOrders has no attribute DocumentNumber"),
    ("10: COUNT CHILD:Line", "row 10: Crm.Sales.SalesOrders has no child collection Line. Did you mean Lines?"),
    ("10: GETVALUE REF:Custom", "row 10: Crm.Sales.SalesOrders has no reference Custom"),
    ("10: GETVALUE SYS:Password", "row 10: SYS:Password is none of Login"),
    ("10: SELECT REPO:Crm.Nothing", "row 10: There is no repository 'Crm.Nothing'"),
    ("10: GETOBJVALUE INPUT:30 ATTRIB:Id\n30: TODAY", "row 10: INPUT:30: this row is not evaluated inside row 30"),
    ("10: CONVERT CONST:1 CONST:System.Nothing", "row 10: there is no type System.Nothing"),
    ("10: REGEX ATTRIB:DocumentNo CONST:'(a'", "row 10: the pattern cannot be read from its position 0"),
    ("10: GT ATTRIB:DocumentNo CONST:50", "row 10: Edm.Int32 cannot stand for Edm.String"),
    ("10: EQUAL ATTRIB:DocumentDate CONST:'xyz'", "row 10: 'xyz' is not a valid Edm.Date for this comparison."),
    ("10: IIF CONST:true CONST:1 CONST:'a'", "row 10: Edm.String cannot stand for Edm.Int32"),
    ("10: LIKE ATTRIB:DocumentNo ATTRIB:DocumentNo", "row 10: parameter 2 must be: a constant"),
    ("10: ROUND CONST:1.5 CONST:99", "row 10: parameter 2 must be: a whole number from 0 to 12"),
    ("10: FORMATSTRING ATTRIB:DocumentNo CONST:'N2'", "row 10: the format 'N2' does not fit Edm.String"),
    ("10: INTERPOLATE CONST:'{Nothing}'", "row 10: Crm.Sales.SalesOrders has no attribute Nothing"),
    ("10: INTERPOLATE CONST:'{DocumentNo'", "row 10: The brace is never closed"),
    ("10: COUNT EXP:20\n20: FILTER CHILD:Lines EXP:30\n30: EQUAL EXP:40 CONST:'2'\n40: INCNUM ATTRIB:LineNo",
     "row 20: INCNUM cannot decide which rows a list has"),
    ("10: TODAY\n20: ADD CONST:1", "row 20: ADD needs parameters: 2; it has 1"),
    ("10: TODAY\n10: TODAY", "row 10: two rows have this number"),
)  # fmt: skip


@pytest.mark.parametrize("notation, reason", REFUSED, ids=[case[0].replace("\n", " ") for case in REFUSED])
def test_a_definition_that_cannot_be_evaluated_is_refused(orders: Orders, notation: str, reason: str) -> None:
    error = refused(orders.api.post(SET, body(notation)), 500)
    assert error["type"] == "CalculatedAttributeInvalid"
    assert reason in error["message"]


@pytest.mark.parametrize("name", ["DocumentNo", "lines", "2nd", "a b", "Customer"])
def test_a_taken_or_unusable_name_is_refused(orders: Orders, name: str) -> None:
    assert refused(orders.api.post(SET, body("10: TODAY", name=name)), 500)["target"] == "Name"


def test_a_name_is_unique_among_a_repository_and_its_bases(orders: Orders) -> None:
    orders.define("10: TODAY", name="Day", repository="General.Documents.Documents")
    assert "Day already" in refused(orders.api.post(SET, body("10: TODAY", name="DAY")), 500)["message"]


def test_attributes_that_refer_to_each_other_are_refused(orders: Orders) -> None:
    orders.define("10: LEN ATTRIB:DocumentNo", name="A")
    orders.define("10: ADD ATTRIB:#A CONST:1", name="B")
    first = orders.api.read(f"{SET}?$filter=Name eq 'A'&$expand=Expressions")["value"][0]
    row = first["Expressions"][0]["@odata.id"]
    change = {"Operator": "GETVALUE", "Parameter1Type": "ATTRIB", "Parameter1Value": "B"}
    error = refused(orders.api.patch(row, change), 500)
    assert "attributes refer to each other: A → B → A" in error["message"]


def test_types_of_parameters_are_accepted_by_their_short_names(orders: Orders) -> None:
    given = body("10: EQUAL ATTRIB:DocumentNo CONST:'x'")
    given["Expressions"][0] |= {"Operator": "EQUALS", "Parameter1Type": "ATTRIB", "Parameter2Type": "CONST"}
    made = orders.api.create(SET, given)
    stored = orders.api.read(f"{made['@odata.id']}?$expand=Expressions")["Expressions"][0]
    assert (stored["Operator"], stored["Parameter1Type"], stored["Parameter2Type"]) == (
        "EQUAL",
        "Attribute",
        "Constant",
    )


def test_a_chain_of_rows_is_limited(orders: Orders) -> None:
    deep = "\n".join(f"{n}: ADD EXP:{n + 1} CONST:1" for n in range(1, 60)) + "\n60: ADD CONST:1 CONST:1"
    assert "levels deep" in refused(orders.api.post(SET, body(deep)), 500)["message"]
    wide = "\n".join(f"{n}: ADD EXP:{n + 1} EXP:{n + 1}" for n in range(1, 30)) + "\n30: ADD CONST:1 CONST:1"
    assert "more than 1000 rows" in refused(orders.api.post(SET, body(wide)), 500)["message"]


def test_a_definition_is_in_force_at_once_and_gone_at_once(orders: Orders) -> None:
    name = orders.define("10: LEN ATTRIB:DocumentNo")
    assert orders.read(name, orders.full) == 5
    stored = orders.api.read(SET)["value"][0]["@odata.id"]
    assert orders.api.patch(stored, {"IsActive": False}).status_code == 204
    refused(orders.api.get(f"{ORDER_SET}?$select={name}"), 400)


def test_a_definition_that_broke_is_named_when_it_is_read(orders: Orders, world: World) -> None:
    """A custom property that it uses is gone: the others stay readable, and $metadata leaves it out."""
    prop = {"Code": "c", "Name": {"EN": "c"}, "EntityName": "Crm.Sales.SalesOrders", "PropertyType": "Text"}
    made = orders.api.create("Systems_Bpm_CustomProperties", prop)["@odata.id"]
    name = orders.define("10: LEN ATTRIB:@c")
    assert orders.read(name, orders.full) is None
    error = refused(orders.api.delete(made), 500)
    assert "row 10: it uses Crm.Sales.SalesOrders.@c" in error["message"]
    repositories["Systems.Bpm.CustomProperties"].model._default_manager.all().delete()
    cache_versions.bump(CACHE_VERSION)
    assert "row 10" in refused(orders.api.get(f"{ORDER_SET}?$select={name}"), 500)["message"]
    assert name not in orders.api.get("$metadata").content.decode()


def test_custom_properties_and_other_repositories(api: Api, world: World) -> None:
    prop = {"Code": "w", "Name": {"EN": "w"}, "EntityName": PRODUCTS, "PropertyType": "Number"}
    api.create("Systems_Bpm_CustomProperties", prop)
    api.create(SET, body("10: MULTIPLY ATTRIB:@w CONST:2", repository=PRODUCTS))
    product = f"General_Products_Products({world.product})"
    assert api.patch(product, {"CustomProperty_w": "2.25"}).status_code == 204
    assert api.read(f"{product}?$select=X")["CalculatedAttribute_X"] == 4.5
    assert json.loads(api.get("General_Products_Products/$count?$filter=X gt 4").content) == 1
