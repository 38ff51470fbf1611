"""Times in answers are in UTC with `Z`, whatever makes the answer."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.domain.odata.test_writing import order_body
from tests.domain.table_api.conftest import body_of
from tests.rules.cast import World
from tests.support.api import Answer, Api, id_of

ORDERS = "Crm_Sales_SalesOrders"
_TIME = re.compile(r"\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?([^\d\s]\S?\S?)")


def _in_transaction(api: Api, path: str) -> Answer:
    open_ = api.begin(trackChanges=True)
    assert open_.patch(path, {"ReferenceDate": "2026-01-31T10:00:00+02:00"}).status_code == 204
    return open_.get("GetChanges()")


ANSWERS: dict[str, Callable[[Api, str], Answer]] = {
    "entity": lambda api, path: api.get(f"{path}?$select=*"),
    "history": lambda api, path: api.get(f"Systems_Core_ObjectChanges?$filter=EntityItemId eq {path[-37:-1]}"),
    "script": lambda api, path: api.request(
        "POST",
        "ExecuteScript",
        "for (const o of Domain.Crm.Sales.SalesOrdersRepository.query({}))"
        " console.log(JSON.stringify(o), JSON.stringify({ t: o.CreationTime }))",
        Content_Type="text/plain",
    ),
    "changes": _in_transaction,
    "dry run": lambda api, path: api.patch(
        path, {"ReferenceDate": "2026-01-31T10:00:00+02:00"}, Prefer="erpnet.dry-run, return=representation"
    ),
    "export": lambda api, path: api.client.get(
        f"/api/export/{ORDERS}.json", headers={"Authorization": f"Bearer {api.token}"}
    ),
    "server": lambda api, path: api.client.get("/sys/server-info"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_time_ends_in_z(api: Api, world: World, answer: str) -> None:
    made = api.create(ORDERS, order_body(world, ReferenceDate="2026-01-30T08:00:00Z"))
    given = body_of(ANSWERS[answer](api, f"{ORDERS}({id_of(made)})")).decode()
    found = _TIME.findall(given)
    assert found, given
    assert all(each.startswith("Z") for each in found), given
