"""The query builder's form: what is chosen becomes the address of a request, which the service understands."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from tests.support.api import Api

pytestmark = pytest.mark.django_db

ORDERS = "Crm_Sales_SalesOrders"


def drawn(**fields: Any) -> str:
    answer: Any = Client().post("/api/model/query", {"set": ORDERS, **fields})
    assert answer.status_code == 200
    return str(answer.content.decode())


def address(html: str) -> str:
    found = re.search(r'data-path="([^"]*)"', html)
    assert found, html
    return unescape(found[1])


def built(**fields: Any) -> str:
    return address(drawn(top="", **fields)).partition("?")[2]


def condition(path: str, operator: str, *values: str) -> str:
    return built(**{"path-0": path, "operator-0": operator, "value-0": values})


@pytest.mark.parametrize(
    "chosen,wanted",
    [
        ((), ""),
        (("DocumentNo", "State"), "$select=DocumentNo,State"),
        (("Customer/Number",), "$expand=Customer($select=Number)"),
        (("DocumentNo", "Customer/Number"), "$select=DocumentNo,Customer&$expand=Customer($select=Number)"),
        (("DocumentNo", "Lines"), "$select=DocumentNo,Lines&$expand=Lines"),
        (("Nope", "DocumentNo"), "$select=DocumentNo"),
    ],
)
def test_columns(api: Api, chosen: tuple[str, ...], wanted: str) -> None:
    assert built(columns=chosen) == wanted
    assert api.get(f"{ORDERS}?{wanted}").status_code == 200


@pytest.mark.parametrize(
    "path,operator,values,wanted",
    [
        ("DocumentNo", "contains", ["a'b"], "contains(DocumentNo,'a''b')"),
        ("State", "in", ["Released", "Closed"], "State in ('Released','Closed')"),
        ("State", "eq", [], "State eq 'New'"),  # the first that may be chosen
        ("DocumentDate", "ge", ["2025-01-02"], "DocumentDate ge 2025-01-02"),
        ("CreationTime", "lt", ["2025-01-02T03:04"], "CreationTime lt 2025-01-02T03:04:00Z"),
        ("TotalLineAmount", "gt", ["10.50"], "TotalLineAmountValue gt 10.50"),
        ("Customer", "isnull", [], "Customer eq null"),
        ("Customer/Number", "startswith", ["C"], "startswith(Customer/Number,'C')"),
        ("CreditLimitOverride", "eq", ["true"], "CreditLimitOverride eq true"),
        ("DocumentNo", "contains", [""], ""),
        ("DocumentNo", "gt", ["5"], ""),  # fits no text: the first operator, without the value
        ("Nope", "eq", ["5"], ""),
    ],
)
def test_conditions(api: Api, path: str, operator: str, values: list[str], wanted: str) -> None:
    assert condition(path, operator, *values) == (f"$filter={wanted}" if wanted else "")
    if wanted:
        assert api.get(f"{ORDERS}?$filter={wanted}").status_code == 200


def test_order_rows_and_several_conditions() -> None:
    fields = {"path-3": "State", "operator-3": "eq", "value-3": "Closed", "path-7": "DocumentNo", "operator-7": "ne",
              "value-7": "1", "join": "or", "by-0": "DocumentNo", "direction-0": "desc", "by-1": "Customer/Number",
              "skip": "5", "count": "on"}  # fmt: skip
    assert built(**fields) == (
        "$filter=State eq 'Closed' or DocumentNo ne '1'&$orderby=DocumentNo desc,Customer/Number&$skip=5&$count=true"
    )
    assert address(drawn()).endswith("?$top=20")
    assert address(drawn(top="7 &$x", skip="-1")) == ORDERS


def test_buttons_add_and_remove_rows() -> None:
    rows = {"path-0": "State", "operator-0": "eq", "path-1": "DocumentNo", "operator-1": "eq", "by-4": "DocumentNo"}
    added = drawn(**rows, do=["add-condition", "add-order"])
    assert re.findall(r'name="(path-\d|by-\d)"', added) == ["path-0", "path-1", "path-2", "by-4", "by-5"]
    removed = drawn(**rows, do=["remove-condition-0", "remove-order-4"])
    assert re.findall(r'name="(path-\d|by-\d)"', removed) == ["path-1"]


def test_another_column_takes_a_new_value() -> None:
    changed = {"path-0": "DocumentDate", "was-0": "DocumentNo", "operator-0": "eq", "value-0": "0001"}
    html = drawn(**changed)
    assert re.search(r'name="value-0"[^>]* type="date"[^>]* value=""', html)
    assert "$filter" not in address(html)


def test_a_search_keeps_what_is_chosen() -> None:
    html = drawn(columns=["State"], search="documentno")
    assert re.findall(r'id="column-([^"/]*)"( checked)?', html.replace("\n", ""))
    shown = re.findall(r'value="([^"]*)"( checked)?>', html.partition('id="columns"')[2].partition("</fieldset>")[0])
    assert ("State", " checked") in shown
    assert ("DocumentNo", "") in shown
    assert "DocumentDate" not in dict(shown)


@pytest.mark.parametrize("name", ["", "Nope"])
def test_without_a_known_set_there_is_nothing_to_choose(name: str) -> None:
    html = drawn(set=name)
    assert ("There is no such set." in html) == bool(name)
    assert "data-path" not in html


def test_a_caller_sees_own_custom_properties_only_with_a_token(api: Api) -> None:
    headers = {"Authorization": f"Bearer {api.token}"}
    assert Client().post("/api/model/query", {"set": ORDERS}, headers=headers).status_code == 200
    assert Client().post("/api/model/query", {"set": ORDERS}, headers={"Authorization": "Bearer no"}).status_code == 401
