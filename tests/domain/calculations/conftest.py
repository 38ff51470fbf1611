"""Calculated attributes on an order with lines, in the notation of spec 10.1."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from domain.dataset.dataset import Dataset
from domain.dataset.lookups.calculated_values import calculated_value
from domain.model.calculated_attributes import PARAMETERS
from foundation import errors
from tests.rules.cast import ORDERS, World, dataset, new_line, new_order
from tests.support.api import Answer, Api, error_of
from tests.support.calculations import parse_rows

SET = "Systems_Bpm_CalculatedAttributes"
ORDER_SET = "Crm_Sales_SalesOrders"
FAILED = "failed"


def body(notation: str, *, name: str = "X", repository: str = ORDERS, **values: Any) -> dict[str, Any]:
    """The POST body of a definition."""
    rows = parse_rows(notation)
    expressions = []
    for row in rows:
        given: dict[str, Any] = {"ExpressionNo": row.number, "Operator": row.operator}
        for number, parameter in zip(PARAMETERS, row.parameters, strict=False):
            given |= {f"Parameter{number}Type": parameter.type, f"Parameter{number}Value": parameter.value}
        expressions.append(given)
    return {
        "Name": name,
        "Caption": {"EN": name},
        "RepositoryName": repository,
        "IsActive": True,
        "StartingExpressionNo": rows[0].number if rows else 10,
        "Expressions": expressions,
        **values,
    }


@dataclass(frozen=True, slots=True)
class Orders:
    """The full order has three lines, the empty one none."""

    api: Api
    full: str
    empty: str

    def define(self, notation: str, **values: Any) -> str:
        """Define an attribute and return its API name."""
        return "CalculatedAttribute_" + str(self.api.create(SET, body(notation, **values))["Name"])

    def read(self, name: str, order: str) -> Any:
        """The value by the API; FAILED for one that fails."""
        row = self.api.read(f"{ORDER_SET}?$filter=Id eq {order}&$select={name}")["value"][0]
        return FAILED if f"{name}@erpnet.warning" in row else row[name]


@pytest.fixture
def orders(world: World, api: Api) -> Orders:
    """Two orders of a customer."""
    ds = dataset(world.context)
    full = new_order(
        ds, world, DocumentNo="A-009", DocumentNotes="Hello World", DocumentDate=datetime.date(2024, 2, 29)
    )
    for quantity, price, notes in (("2", "10.50", "b"), ("1", "100", "a"), ("5", "0", None)):
        new_line(ds, world, full, Quantity=Decimal(quantity), UnitPrice=Decimal(price), Notes=notes)
    empty = new_order(ds, world, DocumentNo="none", DocumentDate=datetime.date(2023, 12, 31))
    ds.commit()
    return Orders(api, full.id, empty.id)


def by_record(ds: Dataset, order: str, name: str) -> Any:
    """The value that rules, templates and scripts see; FAILED for one that fails."""
    record = ds.load(ORDERS, order)
    assert record is not None
    try:
        return calculated_value(record, name)
    except errors.Refused as exc:
        if exc.code not in (errors.CALCULATION_FAILED, errors.CALCULATION_THREW):
            raise
        return FAILED


def refused(response: Answer, status: int) -> dict[str, Any]:
    """The error of a response with this status."""
    assert response.status_code == status, (response.status_code, response.content)
    return error_of(response)
