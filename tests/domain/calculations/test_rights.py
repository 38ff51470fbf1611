"""A calculated attribute tells a caller nothing that the caller may not read (spec 01, 1.7; spec 10.1)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson
import pytest

from domain.model.registry import repositories
from domain.query import Representation, read_collection
from domain.syntax import parse_query_options
from identity.context import CallContext
from tests.domain.calculations.conftest import SET, Orders, body, by_record, refused
from tests.domain.query.test_permissions import caller
from tests.rules.cast import ORDERS, World, dataset
from tests.support.api import Api

NO_CUSTOMERS = caller("no customers", denied=("Crm.Sales.Customers",))
NO_LINES = caller("no lines", denied=("Crm.Sales.SalesOrderLines",))
ONE_ORDER = caller("one order", Crm__Sales__SalesOrders=("DocumentNo eq 'A-009'",))
CHEAP_LINES = caller("cheap lines", Crm__Sales__SalesOrderLines=("UnitPriceValue le 20",))

OTHER_ORDERS = (
    "10: COUNT EXP:20\n20: SELECT REPO:Crm.Sales.SalesOrders EXP:30\n30: WHERE EXP:40\n40: EQUAL CONST:1 CONST:1"
)

#: notation, caller, value of the full order
HIDDEN: tuple[tuple[str, CallContext, Any], ...] = (
    ("10: GETOBJVALUE REF:Customer ATTRIB:Number", NO_CUSTOMERS, None),
    ("10: GETVALUE ATTRIB:Customer.Number", NO_CUSTOMERS, None),
    ("10: GETVALUE ATTRIB:CustomerId", NO_CUSTOMERS, None),
    ("10: EQUAL REF:Customer CONST:NULL", NO_CUSTOMERS, True),
    ("10: INTERPOLATE CONST:'{Customer.Number}'", NO_CUSTOMERS, ""),
    ("10: CONCAT REF:Customer CONST:'!'", NO_CUSTOMERS, None),
    ("10: IN CONST:'C1' CONST:'C1'", NO_CUSTOMERS, True),
    ("10: COUNT REPO:Crm.Sales.Customers", NO_CUSTOMERS, 0),
    ("10: FORMATSTRING EXP:20 CONST:'N0'\n20: LEN ATTRIB:Customer.Number", NO_CUSTOMERS, None),
    ("10: COUNT CHILD:Lines", NO_LINES, 0),
    ("10: SUM CHILD:Lines ATTRIB:UnitPriceValue", NO_LINES, 0),
    ("10: LIST CHILD:Lines ATTRIB:Notes", NO_LINES, None),
    ("10: LIST CHILD:Lines EXP:20\n20: FORMATSTRING ATTRIB:UnitPriceValue CONST:'N0'", NO_LINES, None),
    ("10: GETOBJVALUE EXP:20 ATTRIB:Notes\n20: FIRST CHILD:Lines", NO_LINES, None),
    ("10: SUM CHILD:Lines ATTRIB:UnitPriceValue", CHEAP_LINES, 10.5),
    ("10: LIST CHILD:Lines EXP:20\n20: FORMATSTRING ATTRIB:UnitPriceValue CONST:'N1'", CHEAP_LINES, "10.5, 0.0"),
    (OTHER_ORDERS, ONE_ORDER, 1),
)  # fmt: skip


def read(ctx: CallContext, options: str) -> list[dict[str, Any]]:
    """Orders as the caller sees them."""
    found = read_collection(repositories[ORDERS], parse_query_options(options), ctx, Representation(metadata="none"))
    rows: list[dict[str, Any]] = orjson.loads(found.body)["value"]
    return rows


@pytest.mark.parametrize(
    "notation, ctx, value",
    HIDDEN,
    ids=[f"{ctx.permissions.key} {notation}".replace("\n", " ") for notation, ctx, _ in HIDDEN],
)
def test_what_is_hidden_is_null_and_no_filter_tells_it(
    orders: Orders, world: World, notation: str, ctx: CallContext, value: Any
) -> None:
    name = orders.define(notation)
    (row,) = read(ctx, f"$select={name}&$filter=DocumentNo eq 'A-009'")
    assert row[name] == value
    assert by_record(dataset(ctx), orders.full, name) == value
    true = orders.read(name, orders.full)
    if true != value and "FORMATSTRING" not in notation:
        literal = quote(f"'{true}'") if isinstance(true, str) else orjson.dumps(true).decode()
        assert read(ctx, f"$filter={name} eq {literal} and DocumentNo eq 'A-009'") == []
        assert len(read(world.context, f"$filter={name} eq {literal} and DocumentNo eq 'A-009'")) == 1


def test_other_attributes_are_no_way_around(orders: Orders) -> None:
    orders.define("10: GETVALUE ATTRIB:Customer.Number", name="Inner")
    outer = orders.define("10: CONCAT ATTRIB:#Inner CONST:'!'", name="Outer")
    assert [row[outer] for row in read(NO_CUSTOMERS, f"$select={outer}")] == [None, None]


def test_secrets_cannot_be_calculated_with(api: Api, world: World) -> None:
    secret = next(
        (each.name, name) for each in repositories for name, attribute in each.attributes.items() if attribute.secret
    )
    error = refused(api.post(SET, body(f"10: LEN ATTRIB:{secret[1]}", repository=secret[0])), 500)
    assert "cannot be calculated with" in error["message"]
    refused(api.post(SET, body(f"10: GETVALUE ATTRIB:{secret[1]}", repository=secret[0])), 500)


def test_repositories_of_administrators_are_empty_for_others(orders: Orders) -> None:
    admin_only = next(each.name for each in repositories if each.admin_only)
    name = orders.define(f"10: COUNT REPO:{admin_only}")
    assert {row[name] for row in read(NO_LINES, f"$select={name}")} == {0}
