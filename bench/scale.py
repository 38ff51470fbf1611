"""Cost of requests by the position of the page and the size of the set (spec 13, 13.7).

    python -m bench.scale [--postgresql postgres://…/postgres] [--few 10000] [--many 1000000] [--orders 1000 1000]

Reads by indexed attributes and writes are measured with few products and orders, and again with many. `print_pages`,
which `make bench` prints too, compares page 1,000 of a set with page 1. Requests are sent one by one over one
connection. The minimum of many times is compared, because other load on the machine only increases a time.
"""

from __future__ import annotations

import argparse
import http.client
import json
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

from bench import floor
from bench.instance import Servers, instance, serving
from bench.load import Request
from bench.multiplied import ORDERS, PRODUCTS, multiply
from bench.operations import writing

_REPEATS = 60
#: Maximum ratio of the times with the large and with the small set.
GOAL = 2.0
_PAGE_ROWS = 10
_PAGES = 1_000

_SELECTED = f"$select={floor.SELECT}"
_PREFIX = f"{floor.SET}?$filter=startswith(PartNumber,'M00047')&$orderby=PartNumber"
#: Name → URL; the rows are among the first thousands, which both sets have.
READ = {
    "GET by key": f"{floor.SET}({{product}})?{_SELECTED}",
    "one part number": f"{floor.SET}?$filter=PartNumber eq 'M0004711'&{_SELECTED}",
    "part numbers with a prefix": f"{_PREFIX}&$top=50&{_SELECTED}",
    "part numbers from one on": f"{floor.SET}?$filter=PartNumber ge 'M0004000'&$orderby=PartNumber&$top=50&{_SELECTED}",
    "products of a group": f"{floor.SET}?$filter=ProductGroup eq '{{group}}'&$top=50&{_SELECTED}",
    "newest part numbers": f"{floor.SET}?$orderby=PartNumber desc&$top=50&{_SELECTED}",
    "50 orders, 2 levels": f"{floor.ORDERS}?$filter=DocumentNo ge 'M000000100'&$orderby=DocumentNo&$top=50"
    f"&$select={floor.ORDER_SELECT}&$expand=Lines($select={floor.LINE_SELECT};$expand=Product({_SELECTED}))",
    "groupby, index only": f"{floor.SET}?$apply=filter(startswith(PartNumber,'M00047'))"
    "/groupby((PartNumber),aggregate($count as Number))",
}


class Caller:
    """Sends requests to the platform over one persistent connection."""

    def __init__(self, servers: Servers, **headers: str) -> None:
        self._root = servers.root
        self._headers = {**servers.headers, **headers}
        self._connection = http.client.HTTPConnection(urllib.parse.urlsplit(servers.root).netloc)

    def get(self, url: str) -> Any:
        """The JSON at a URL, absolute or below the service root."""
        # A link of the platform is encoded already.
        target = url if url.startswith("http") else self._root + urllib.parse.quote(url, safe=":/?$=&,;()'@")
        self._connection.request("GET", target, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{url} answered {answer.status}: {body[:300]!r}")
        return json.loads(body)

    def minimum_ms(self, url: str) -> float:
        """The minimum time of a read in milliseconds."""
        return _minimum_ms(lambda: self.get(url))

    def minimum_ms_to_post(self, request: Request) -> float:
        """The minimum time of a write in milliseconds."""
        assert request.body is not None
        bodies = [request.body(number) for number in range(_REPEATS)]
        target = urllib.parse.urlsplit(request.url)

        def post() -> None:
            self._connection.request("POST", f"{target.path}?{target.query}", bodies.pop(), request.headers)
            answer = self._connection.getresponse()
            body = answer.read()
            if answer.status != 201:
                raise SystemExit(f"{request.url} answered {answer.status}: {body[:300]!r}")

        return _minimum_ms(post)


def _minimum_ms(request: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(_REPEATS):
        started = time.perf_counter()
        request()
        times.append(time.perf_counter() - started)
    return min(times) * 1000


def print_pages(servers: Servers) -> None:
    """Compare page 1,000 of the products with page 1, ordered by key and by another attribute."""
    caller = Caller(servers, Prefer=f"odata.maxpagesize={_PAGE_ROWS}")
    print(f"\nPage {_PAGES:,} against page 1, of {_PAGE_ROWS} rows")
    for name, options in (("by key", ""), ("by PartNumber desc", "&$orderby=PartNumber desc")):
        first = url = f"{floor.SET}?$select=PartNumber,Name,ProductGroup{options}"
        for _ in range(_PAGES - 1):
            url = caller.get(url)["@odata.nextLink"]
        early, late = caller.minimum_ms(first), caller.minimum_ms(url)
        print(f"  {name:<28}{late:7.2f} ms against {early:.2f} ms: {late / early:.2f}", flush=True)


def measure(servers: Servers) -> dict[str, float]:
    """Name → minimum time in milliseconds."""
    caller, tracking = Caller(servers), Caller(servers, Prefer="odata.track-changes")
    product = caller.get(f"{floor.SET}?$filter=PartNumber eq 'M0000001'&$select=Id,ProductGroup")["value"][0]
    known = {"product": product["Id"], "group": product["ProductGroup"]["@odata.id"]}
    found = {name: caller.minimum_ms(url.format(**known)) for name, url in READ.items()}
    page = tracking.get(f"{_PREFIX}&{_SELECTED}")
    while "@odata.deltaLink" not in page:
        page = tracking.get(page["@odata.nextLink"])
    found |= {entry.name: caller.minimum_ms_to_post(entry.ours) for entry in writing(servers)}
    # The changes since the delta link include the products and orders of these writes.
    found["delta, nothing of it"] = caller.minimum_ms(page["@odata.deltaLink"])
    return found


def main() -> None:
    """Measure with few products and orders and with many; print both."""
    parser = argparse.ArgumentParser(description="Compare requests to small sets with requests to large ones.")
    parser.add_argument("--few", type=int, default=10_000, help="products in the small set")
    parser.add_argument("--many", type=int, default=1_000_000, help="products in the large set")
    parser.add_argument("--orders", type=int, nargs=2, default=(1_000, 1_000), help="orders of five lines in both")
    parser.add_argument("--postgresql", default="", metavar="URL", help="on this server, in a database of its own")
    arguments = parser.parse_args()
    found: list[dict[str, float]] = []
    with instance(arguments.postgresql) as prepared:
        for products, orders in zip((arguments.few, arguments.many), arguments.orders, strict=True):
            if arguments.postgresql and products > PRODUCTS and orders > ORDERS:
                prepared.load(PRODUCTS, ORDERS)
                multiply(prepared.database, products, orders)
            else:
                prepared.load(products, orders)
            with serving(prepared) as servers:
                found.append(measure(servers))
    database = "PostgreSQL" if arguments.postgresql else "SQLite"
    few_orders, many_orders = arguments.orders
    print(f"{database}: with {arguments.few:,} products and {few_orders:,} orders, and with", end=" ")
    print(f"{arguments.many:,} and {many_orders:,}")
    for name, few in found[0].items():
        many = found[1][name]
        verdict = "reached" if many <= GOAL * few else "missed"
        print(f"  {name:<28}{few:7.2f} ms {many:7.2f} ms: {many / few:.2f} {verdict}")


if __name__ == "__main__":
    main()
