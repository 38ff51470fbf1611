"""Cost of admin pages: processor time of warm requests, on an instance with many orders.

    python -m bench.pages [--orders 10000] [--database postgres://…/postgres] [--profile "list of orders"]

Requests pass the whole middleware stack in this process; the median of _REPEATS is compared with a goal. Processor time
does not count what others do on the machine, nor the time that a database server of its own takes.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import time
from dataclasses import dataclass
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.db import connections
from django.test import Client

from bench.instance import instance

_REPEATS = 25
_WARM_UP = 5
#: Kept of a profile.
_LINES = 45


@dataclass(frozen=True, slots=True)
class Measured:
    """A page and its maximum time in milliseconds."""

    name: str
    path: str
    goal_ms: float


def pages() -> list[Measured]:
    """The measured pages of the instance of this process."""
    orders: Any = apps.get_model("domain", "SalesOrder")._default_manager
    order = orders.filter(state="New").order_by("-pk").values_list("pk", flat=True)[0]
    listed = "/admin/domain/salesorder/"
    columns = "__str__,customer,document_date,state,total_line_amount,store,reference_document_no"
    return [
        Measured("home", "/admin/", 150),
        Measured("list of orders", listed, 150),
        Measured("list, filtered", f"{listed}?state=Released", 150),
        Measured("list, searched", f"{listed}?q=10004", 150),
        Measured("list, seven columns", f"{listed}?columns={columns}", 150),
        Measured("list of products", "/admin/domain/product/", 150),
        Measured("list of customers", "/admin/domain/customer/", 150),
        Measured("list of rules", "/admin/domain/userbusinessrule/", 150),
        Measured("board of orders", f"{listed}board/", 150),
        Measured("order", f"{listed}{order}/change/", 200),
        Measured("new order", f"{listed}add/", 200),
    ]


def median_ms(client: Any, path: str) -> float:
    """The median processor time of a warm request for a page."""
    times: list[float] = []
    for at in range(_WARM_UP + _REPEATS):
        started = time.process_time()
        answer = client.get(path)
        spent = time.process_time() - started
        if answer.status_code != 200:
            raise SystemExit(f"{path} answered {answer.status_code}")
        if at >= _WARM_UP:
            times.append(spent)
    return statistics.median(times) * 1000


def _administrator() -> Any:
    client = Client()
    client.force_login(apps.get_model("identity", "User")._default_manager.get(login="admin"))
    return client


def _profiled(client: Any, path: str) -> None:
    client.get(path)
    with cProfile.Profile() as profile:
        for _ in range(_WARM_UP):
            client.get(path)
    pstats.Stats(profile).sort_stats("cumulative").print_stats(_LINES)
    pstats.Stats(profile).sort_stats("tottime").print_stats(_LINES)


def main() -> None:
    """Prepare an instance, measure every page, print a table; exit status 1 if a goal was missed."""
    parser = argparse.ArgumentParser(description="Measure the processor time of admin pages.")
    parser.add_argument("--orders", type=int, default=10_000, help="orders in the database")
    parser.add_argument("--database", default="", metavar="URL", help="a PostgreSQL server, in place of SQLite")
    parser.add_argument("--profile", default="", metavar="PAGE", help="print where the time of one page goes")
    arguments = parser.parse_args()
    with instance(arguments.database) as prepared:
        prepared.load(1_000, arguments.orders)
        os.environ.update(prepared.environment)
        missed = _measure(arguments.profile, arguments.orders)
    raise SystemExit(missed)


def _measure(profiled: str, orders: int) -> bool:
    django.setup()
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
    client, missed = _administrator(), False
    print(f"Processor time of a page with {orders:,} orders, median of {_REPEATS} warm requests")
    for page in pages():
        if profiled and page.name != profiled:
            continue
        took = median_ms(client, page.path)
        missed |= took > page.goal_ms
        verdict = "missed" if took > page.goal_ms else "reached"
        print(f"  {page.name:<24}{took:7.0f} ms, goal {page.goal_ms:.0f}: {verdict}", flush=True)
        if profiled:
            _profiled(client, page.path)
    connections.close_all()
    return missed


if __name__ == "__main__":
    main()
