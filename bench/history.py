# ruff: noqa: E402  (the settings must be chosen before Django is imported)
"""The cost of the change history: `.venv/bin/python -m bench.history [--turns N]`.

Goal (spec 12, 12.2): POST and PATCH of a product, and POST of an order with ten lines, cost at most 15 % more at
level 3 than at level 0. Measures the processor time of whole requests in one process, alternating the levels.

A page by key as of a time costs at most three times a page of the current rows (12.3).

Creates a data directory and a database.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
_DIRECTORY = tempfile.TemporaryDirectory(prefix="bench-history-")
os.environ.update(DATA_DIR=_DIRECTORY.name, DJANGO_SETTINGS_MODULE="platform_site.settings", LOG_LEVEL="ERROR")

import django

django.setup()

from bench.in_process import product_references, service_sender
from domain.dataset.commit.tracking import CACHE_VERSION
from domain.dataset.dataset import Dataset
from domain.dataset.tables.history import RepositoryTracking
from domain.entities.general_products import Product
from foundation import cache_versions
from foundation.fields import utc_now
from tests.rules.cast import ORDERS, PRODUCTS, World, make_world

REQUESTS_A_TURN = 15
#: Products of the pages.
ROWS = 10_000
LEVELS = ("DoNotTrackChanges", "TrackObjectAndAttributeChanges")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30)
    turns = parser.parse_args().turns
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, check=True)
    for name in (ORDERS, PRODUCTS):
        RepositoryTracking.objects.create(repository_name=name)
    world = make_world()
    for title, ask in requests(world).items():
        spent: dict[str, list[float]] = {level: [] for level in LEVELS}
        for turn in range(turns):
            level = LEVELS[turn % 2]
            RepositoryTracking.objects.exclude(repository_name="*").update(tracking_level=level)
            cache_versions.bump(CACHE_VERSION)
            cache_versions.expire()
            ask()
            ask()
            for _ in range(REQUESTS_A_TURN):
                began = time.process_time()
                ask()
                spent[level].append(time.process_time() - began)
        without, with_ = (statistics.median(spent[level]) * 1000 for level in LEVELS)
        print(f"{title:30} {without:6.2f} ms at level 0, {with_:6.2f} ms at level 3: {with_ / without - 1:+.1%}")
    measure_reads(world, turns)


def measure_reads(world: World, turns: int) -> None:
    """Compare pages as of a time, after which a tenth of the products was changed, with pages of the current rows."""
    stored = Product.objects.get(pk=world.product)
    fields = {
        each.attname: getattr(stored, each.attname) for each in Product._meta.concrete_fields if each.name != "id"
    }
    for start in range(0, ROWS, 1_000):
        Product.objects.bulk_create(
            Product(**{**fields, "part_number": f"M{number}"}) for number in range(start, start + 1_000)
        )
    RepositoryTracking.objects.exclude(repository_name="*").update(tracking_level=LEVELS[1], tracked_since=utc_now())
    cache_versions.bump(CACHE_VERSION)
    cache_versions.expire()
    at = quote(utc_now().isoformat())
    keys = [str(key) for key in Product.objects.values_list("pk", flat=True)[: ROWS // 10]]
    for start in range(0, len(keys), 100):
        dataset = Dataset(world.context)
        for record in dataset.load_many(PRODUCTS, keys[start : start + 100]).values():
            dataset.set(record, "Name", {"EN": "changed since"})
        dataset.commit()
    send = service_sender()
    for title, query in {
        "page of 100 by key": "$top=100&$orderby=Id",
        "page of 50, filtered and ordered": "$top=50&$orderby=PartNumber&$filter=startswith(PartNumber,'M1')",
    }.items():
        spent: dict[str, list[float]] = {"": [], f"&$at={at}": []}
        for turn in range(turns * 4):
            option = list(spent)[turn % 2]
            began = time.process_time()
            send("GET", f"General_Products_Products?{query}{option}", None)
            if turn > 3:
                spent[option].append(time.process_time() - began)
        now, then = (statistics.median(each) * 1000 for each in spent.values())
        print(f"{title:34} {now:6.2f} ms now, {then:6.2f} ms as of a time: {then / now:.2f} times")


def requests(world: World) -> dict[str, Callable[[], None]]:
    """The measured requests, sent to the application in this process."""
    references, send = product_references(world), service_sender()
    numbers = itertools.count()
    line = {
        "Product": {"@odata.id": f"General_Products_Products({world.product})"},
        "QuantityUnit": {"@odata.id": f"General_Products_MeasurementUnits({world.unit})"},
    }
    order = {
        "DocumentType": {"@odata.id": f"Systems_Documents_DocumentTypes({world.document_type})"},
        "EnterpriseCompany": {"@odata.id": f"General_EnterpriseCompanies({world.company})"},
        "Customer": {"@odata.id": f"Crm_Sales_Customers({world.customer})"},
        "DocumentCurrency": {"@odata.id": f"General_Currencies_Currencies({world.currency})"},
        "FromParty": {"@odata.id": f"General_Contacts_Parties({world.party})"},
        "Lines": [line] * 10,
    }

    def post() -> None:
        send(
            "POST",
            "General_Products_Products?$select=Id",
            {"PartNumber": f"H{next(numbers)}", "Name": {"EN": "Posted"}, **references},
        )

    def patch() -> None:
        send(
            "PATCH",
            f"General_Products_Products({world.product})?$select=Id",
            {"Name": {"EN": f"Chair {next(numbers)}"}},
        )

    return {
        "POST of a product": post,
        "PATCH of a product": patch,
        "POST of an order with 10 lines": lambda: send("POST", "Crm_Sales_SalesOrders?$select=Id", order),
    }


if __name__ == "__main__":
    main()
