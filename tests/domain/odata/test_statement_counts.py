"""Statements that frequent requests execute: each takes as long as a tenth of a keyed read.

A number grows only for a reason that is worth it to every caller of the operation.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from platform_site.middleware import QueryCounter
from tests.domain.odata.test_writing import ORDERS, PRODUCTS, order_body
from tests.rules.cast import World
from tests.support.api import Api


def keyed_get(api: Api, world: World) -> None:
    api.read(f"{PRODUCTS}({world.product})?$select=PartNumber,Name,ProductGroup")


def product_count(api: Api, world: World) -> None:
    api.get(f"{PRODUCTS}/$count?$filter=contains(PartNumber,'7')")


def expanded_page(api: Api, world: World) -> None:
    api.read(f"{ORDERS}?$top=5&$select=DocumentNo&$expand=Lines($select=LineNo;$expand=Product($select=Name))")


def post_product(api: Api, world: World) -> None:
    like = api.read(f"{PRODUCTS}({world.product})?$select=ProductGroup,MeasurementUnit")
    known = {name: like[name] for name in ("ProductGroup", "MeasurementUnit")}
    body = {"PartNumber": secrets.token_hex(12), "Name": {"EN": "Counted"}, **known}
    api.create(f"{PRODUCTS}?$select=PartNumber", body)


def post_order(api: Api, world: World) -> None:
    lines: list[dict[str, Any]] = [{"Quantity": {"Value": 2}} for _ in range(10)]
    api.create(f"{ORDERS}?$select=DocumentNo", order_body(world, *lines))


@pytest.mark.parametrize(
    "operation, most",
    [
        pytest.param(keyed_get, 1, id="GET by key"),
        pytest.param(product_count, 1, id="$count"),
        pytest.param(expanded_page, 3, id="two levels of $expand"),
        pytest.param(post_product, 12, id="GET by key and POST of a product"),
        pytest.param(post_order, 17, id="POST of an order with ten lines"),
    ],
)
def test_a_frequent_request_executes_few_statements(
    api: Api, world: World, operation: Callable[[Api, World], None], most: int
) -> None:
    operation(api, world)  # plans and caches are made
    counter = QueryCounter()
    with connection.execute_wrapper(counter):
        operation(api, world)
    assert counter.count <= most
