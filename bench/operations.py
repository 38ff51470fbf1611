"""The measured operations: the same work as requests to the platform and to the floor."""

from __future__ import annotations

import json
import secrets
import urllib.parse
from dataclasses import dataclass
from typing import Any

from bench import floor
from bench.instance import Servers, fetch
from bench.load import Request

#: Number of requests in a `$batch`.
BATCH_PARTS = 20


@dataclass(frozen=True, slots=True)
class Measured:
    """One operation. goal: the share of the floor's requests per second to reach."""

    name: str
    goal: float
    ours: Request
    bare: Request


def reading(servers: Servers) -> list[Measured]:
    """The reads. Raises SystemExit if the two sides respond differently."""
    products, orders, lines = (f"{servers.root}{name}" for name in (floor.SET, floor.ORDERS, floor.LINES))
    product = f"$select={floor.SELECT}"
    first = first_product(servers)
    totals = "aggregate(LineAmountValue with sum as Total,$count as Number)"
    expanded = f"Lines($select={floor.LINE_SELECT};$expand=Product($select={floor.SELECT}))"
    queries = [
        ("GET by key", 0.30, f"{products}({first})?{product}", f"/one/{first}"),
        ("page of 100 × 12", 0.65, f"{products}?$top=100&{product}", "/page/100"),
        ("page of 1,000 × 12", 0.90, f"{products}?$top=1000&{product}", "/page/1000"),
        (
            "filtered, ordered, 50",
            0.60,
            f"{products}?$filter=ABCClass eq 'A' and StandardPricePerLotValue gt 100"
            f"&$orderby=PartNumber desc&$top=50&{product}",
            "/filtered",
        ),
        (
            "50 orders, 2 levels",
            0.85,
            f"{orders}?$top=50&$select={floor.ORDER_SELECT}&$expand={expanded}",
            "/expanded",
        ),
        # The first is answered from an index alone, the second reads each row.
        ("$count, code contains", 0.85, f"{products}/$count?$filter=contains(PartNumber,'77')", "/count"),
        ("$count, name contains", 0.85, f"{products}/$count?$filter=contains(Name,'77')", "/named"),
        (
            "groupby, 50,000 lines",
            0.95,
            f"{lines}?$apply=groupby((SalesOrder/Customer),{totals})",
            "/groups",
        ),
        (
            "top 50 of products",
            0.93,
            f"{lines}?$apply=groupby((Product),aggregate(LineAmountValue with sum as Total))"
            "&$orderby=Total desc&$top=50",
            "/totals",
        ),
    ]
    found: list[Measured] = []
    for name, goal, ours, theirs in queries:
        url = urllib.parse.quote(ours, safe=":/?$=&,;()'@")
        if fetch(url, servers.headers) != fetch(f"{servers.bare}{theirs}", {}):
            raise SystemExit(f"{name}: the platform and the floor respond differently")
        found.append(
            Measured(name, goal, Request("GET", url, servers.headers), Request("GET", servers.bare + theirs, {}))
        )
    return found


def writing(servers: Servers) -> list[Measured]:
    """POST of a product, and of an order with ten lines."""
    first = first_product(servers)
    group = fetch(f"{servers.root}{floor.SET}({first})?$select=ProductGroup", servers.headers)["ProductGroup"]
    order = _order(servers)

    def product_body(number: int) -> bytes:
        body = {"PartNumber": secrets.token_hex(12), "Name": {"EN": "Measured"}, "ProductGroup": group}
        return json.dumps(body).encode()

    def order_body(number: int) -> bytes:
        return order

    ours = {**servers.headers, "Content-Type": "application/json"}
    theirs = {"Content-Type": "application/json"}
    return [
        Measured(
            "POST one product",
            0.40,
            Request("POST", f"{servers.root}{floor.SET}?$select={floor.SELECT}", ours, product_body),
            Request("POST", f"{servers.bare}/product", theirs, product_body),
        ),
        Measured(
            "POST order, 10 lines",
            0.55 if servers.is_sqlite else 0.40,
            Request("POST", f"{servers.root}{floor.ORDERS}?$select={floor.ORDER_SELECT}", ours, order_body),
            Request("POST", f"{servers.bare}/order", theirs, order_body),
        ),
    ]


def _order(servers: Servers) -> bytes:
    """The body of an order with the required attributes and ten lines."""
    like = "$top=1&$select=DocumentType,EnterpriseCompany,Store,Customer"
    known = fetch(f"{servers.root}{floor.ORDERS}?{like}", servers.headers)["value"][0]
    head = {name: known[name] for name in ("DocumentType", "EnterpriseCompany", "Store", "Customer")}
    sold = "$top=10&$select=Id&$filter=startswith(PartNumber,%27M%27)"
    products = fetch(f"{servers.root}{floor.SET}?{sold}", servers.headers)["value"]
    lines: list[dict[str, Any]] = [
        {"Product": {"@odata.id": f"{floor.SET}({row['Id']})"}, "Quantity": {"Value": 2}} for row in products
    ]
    return json.dumps({**head, "Lines": lines}).encode()


def batch(servers: Servers) -> Request:
    """A `$batch` of keyed GETs."""
    url = f"{floor.SET}({first_product(servers)})?$select={floor.SELECT}"
    parts = [{"id": str(number), "method": "GET", "url": url} for number in range(BATCH_PARTS)]
    body = json.dumps({"requests": parts}).encode()
    headers = {**servers.headers, "Content-Type": "application/json"}
    return Request("POST", f"{servers.root}$batch", headers, lambda number: body)


def first_product(servers: Servers) -> str:
    """The guid of a product."""
    return str(fetch(f"{servers.root}{floor.SET}?$top=1&$select=Id", servers.headers)["value"][0]["Id"])
