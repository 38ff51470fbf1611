"""Does a page cost the same wherever it is, and however large the set?

    python -m bench.scale [--postgresql postgres://…/postgres] [--few 10000] [--many 1000000]

Pages by indexed attributes are measured with few products and again with many. `print_pages`, which `make bench` prints
too, compares page 1,000 of a set with page 1. Requests come one after the other over one connection, and the least time
of many is compared: what others do on the machine only ever adds to it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import time
import urllib.parse
from typing import Any

from bench import floor
from bench.instance import Servers, instance, serving

_REPEATS = 60
#: How many times as dear a page may become with the set.
GOAL = 2.0
_PAGE_ROWS = 10
_PAGES = 1_000

#: What → options of a page of products; the rows are among the first thousands, and so in the small set and the large.
FILTERED = {
    "one part number": "$filter=PartNumber eq 'M0004711'",
    "part numbers with a prefix": "$filter=startswith(PartNumber,'M00047')&$orderby=PartNumber&$top=50",
    "part numbers from one on": "$filter=PartNumber ge 'M0004000'&$orderby=PartNumber&$top=50",
    "products of a group": "$filter=ProductGroup eq '{group}'&$top=50",
    "newest part numbers": "$orderby=PartNumber desc&$top=50",
}


class Caller:
    """Asks the platform over one connection that stays open."""

    def __init__(self, servers: Servers, **headers: str) -> None:
        self._root = servers.root
        self._headers = {**servers.headers, **headers}
        self._connection = http.client.HTTPConnection(urllib.parse.urlsplit(servers.root).netloc)

    def get(self, url: str) -> Any:
        """The JSON at an address, absolute or below the service root."""
        # A link of the platform is encoded already.
        target = url if url.startswith("http") else self._root + urllib.parse.quote(url, safe=":/?$=&,;()'@")
        self._connection.request("GET", target, headers=self._headers)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{url} answered {answer.status}: {body[:300]!r}")
        return json.loads(body)

    def least_ms(self, url: str) -> float:
        """The shortest time to an answer."""
        times: list[float] = []
        for _ in range(_REPEATS):
            started = time.perf_counter()
            self.get(url)
            times.append(time.perf_counter() - started)
        return min(times) * 1000


def print_pages(servers: Servers) -> None:
    """Page 1,000 against page 1 of the products, in the order of the key and in another."""
    caller = Caller(servers, Prefer=f"odata.maxpagesize={_PAGE_ROWS}")
    print(f"\nPage {_PAGES:,} against page 1, of {_PAGE_ROWS} rows")
    for name, options in (("by key", ""), ("by PartNumber desc", "&$orderby=PartNumber desc")):
        first = url = f"{floor.SET}?$select=PartNumber,Name,ProductGroup{options}"
        for _ in range(_PAGES - 1):
            url = caller.get(url)["@odata.nextLink"]
        early, late = caller.least_ms(first), caller.least_ms(url)
        print(f"  {name:<28}{late:7.2f} ms against {early:.2f} ms: {late / early:.2f}", flush=True)


def measure(servers: Servers) -> dict[str, float]:
    """What → the shortest time to a page."""
    caller = Caller(servers)
    product = caller.get(f"{floor.SET}?$filter=PartNumber eq 'M0000001'&$select=ProductGroup")["value"][0]
    group = product["ProductGroup"]["@odata.id"]
    return {
        name: caller.least_ms(f"{floor.SET}?{options.format(group=group)}&$select={floor.SELECT}")
        for name, options in FILTERED.items()
    }


def main() -> None:
    """Measure with few products and with many; print both."""
    parser = argparse.ArgumentParser(description="Compare pages of a small set and of a large one.")
    parser.add_argument("--few", type=int, default=10_000, help="products in the small set")
    parser.add_argument("--many", type=int, default=1_000_000, help="products in the large set")
    parser.add_argument("--postgresql", default="", metavar="URL", help="on this server, in a database of its own")
    arguments = parser.parse_args()
    found: list[dict[str, float]] = []
    with instance(arguments.postgresql) as prepared:
        for products in (arguments.few, arguments.many):
            prepared.load(products, 1_000)
            with serving(prepared) as servers:
                found.append(measure(servers))
    database = "PostgreSQL" if arguments.postgresql else "SQLite"
    print(f"{database}: a page out of {arguments.few:,} products, and out of {arguments.many:,}")
    for name, few in found[0].items():
        many = found[1][name]
        verdict = "reached" if many <= GOAL * few else "missed"
        print(f"  {name:<28}{few:7.2f} ms {many:7.2f} ms: {many / few:.2f} {verdict}")


if __name__ == "__main__":
    main()
