"""Calculated attributes in rules, templates and scripts (spec 10.1), with pending changes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from domain.dataset.templates.record_template import compile_template
from domain.model.registry import repositories
from tests.domain.calculations.conftest import ORDER_SET, Orders, refused
from tests.rules.cast import LINES, ORDERS, World, dataset

NAME = "CalculatedAttribute_Total"
TOTAL = "10: SUM CHILD:Lines EXP:20\n20: MULTIPLY ATTRIB:QuantityValue ATTRIB:UnitPriceValue"


@pytest.fixture
def total(orders: Orders) -> Orders:
    """Orders with their total: 121 and 0."""
    orders.define(TOTAL, name="Total")
    return orders


def rule(*conditions: dict[str, Any], action: dict[str, Any], repository: str = ORDERS) -> dict[str, Any]:
    return {
        "Code": "R1",
        "Name": {"EN": "R1"},
        "RepositoryName": repository,
        "IsActive": True,
        "Events": [{"EventType": "COMMIT", "Layer": "BackEnd"}],
        "Conditions": [{"ConditionNo": 10 * (at + 1), **condition} for at, condition in enumerate(conditions)],
        "Actions": [{"ActionNo": 10, **action}],
    }


def test_a_condition_of_a_rule_sees_the_pending_value(total: Orders) -> None:
    fail = {"ActionType": "FAIL", "Parameter1Type": "Interpolate", "Parameter1Value": "Total is {#Total:N1} ({Total})"}
    condition = {"AttributeName": "#Total", "ComparisonType": "Greater_Than", "Value": "200"}
    total.api.create("Systems_Bpm_UserBusinessRules", rule(condition, action=fail))
    assert total.api.patch(f"{ORDER_SET}({total.full})", {"DocumentNotes": "x"}).status_code == 204
    line = total.api.read(f"{ORDER_SET}({total.full})/Lines?$orderby=LineNo&$top=1")["value"][0]["@odata.id"]
    change = {"Lines": [{"@odata.id": line, "UnitPrice": {"Value": 100, "Currency": "EUR"}}], "DocumentNotes": "y"}
    error = refused(total.api.patch(f"{ORDER_SET}({total.full})", change), 500)
    assert error["message"] == "Total is 300.0 (300)"


def test_a_rule_of_lines_reaches_it_over_a_reference(total: Orders) -> None:
    fail = {"ActionType": "FAIL", "Parameter1Type": "Constant", "Parameter1Value": "too much"}
    condition = {"AttributeName": "SalesOrder.#Total", "ComparisonType": "Greater_Than", "Value": "100"}
    total.api.create("Systems_Bpm_UserBusinessRules", rule(condition, action=fail, repository=LINES))
    line = total.api.read(f"{ORDER_SET}({total.full})/Lines?$top=1")["value"][0]["@odata.id"]
    assert refused(total.api.patch(line, {"Notes": "z"}), 500)["message"] == "too much"


def test_an_unknown_name_is_refused_when_a_rule_is_saved(total: Orders) -> None:
    fail = {"ActionType": "FAIL", "Parameter1Type": "Interpolate", "Parameter1Value": "{#Totals}"}
    assert "Totals" in refused(total.api.post("Systems_Bpm_UserBusinessRules", rule(action=fail)), 500)["message"]


def test_templates_have_it_with_formats_and_over_paths(total: Orders, world: World) -> None:
    ds = dataset(world.context)
    order = ds.load(ORDERS, total.full)
    assert order is not None
    line = order.children("Lines")[0]
    template = compile_template(repositories[LINES], "{SalesOrder.#Total:N2}/{SalesOrder.CalculatedAttribute_Total}")
    assert template.render(line) == "121.00/121"
    ds.set(line, "UnitPrice", Decimal(0))
    assert template.render(line) == "100.00/100"


def run(orders: Orders, script: str) -> str:
    response = orders.api.request("POST", "ExecuteScript", script, Content_Type="text/plain")
    assert response.status_code == 200, response.content
    return str(response.json()["console"])


def test_scripts_read_it_by_name(total: Orders) -> None:
    find = "const o = Domain.Crm.Sales.SalesOrdersRepository.query({}, {orderBy: 'DocumentNo'});"
    assert run(total, f"{find} console.log(o[0].Total, o[1].CalculatedAttribute_Total)") == "121 0"
    pending = "o[0].Lines[0].UnitPrice = Domain.Types.Amount.Multiply(o[0].Lines[0].UnitPrice, 0);"
    assert run(total, f"{find} console.log(o[0].Total); {pending} console.log(o[0].Total)") == "121\n100"
    refused(total.api.request("POST", "ExecuteScript", f"{find} o[0].Total = 5", Content_Type="text/plain"), 400)
    caught = "try { o[0].Totals } catch (e) { console.log(e.type) }"
    assert run(total, f"{find} {caught}") == "UnknownProperty"
