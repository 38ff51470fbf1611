# ruff: noqa: E402  (the settings must be chosen before Django is imported)
"""Cost of dry runs: `python -m bench.dry_runs [--turns 60]`. On SQLite, or on an empty database by DATABASE_URL.

Goal (spec 12, 12.1): a dry run costs at most 1.15 times the real request. Both run in this process,
alternating, so that other load on the machine affects both alike; the medians are compared. Processor time is that of
this process; elapsed time includes the database's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="bench-dry-runs-")
os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
os.environ.setdefault("LOG_LEVEL", "ERROR")

import django

django.setup()

import orjson
from django.core.management import call_command

from domain.odata.message.message import ODataResponse, ReceivedRequest
from domain.odata.service import handler
from foundation.guids import new_guid
from identity.context import CallContext
from identity.preferences import parse_prefer
from tests.rules.cast import ORDERS, World, make_world, set_value, warn, write_rule

GOAL = 1.15
SALES_ORDERS = "Crm_Sales_SalesOrders"
#: (method, path, body) of the n-th request.
Sent = tuple[str, str, Any]


def main() -> None:
    """Prepare a database, measure each request, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=60)
    turns = parser.parse_args().turns
    call_command("migrate", verbosity=0)
    world = make_world()
    write_rule(
        world, ORDERS, ["COMMIT"], conditions=[("ReferenceDocumentNo", "Equals", "R")],
        actions=[set_value("ReferenceDocumentNo", "S"), warn("{DocumentNo}")],
    )  # fmt: skip
    for name, make in _requests(world).items():
        processor, whole = _ratios(world, make, turns)
        verdict = "reached" if processor <= GOAL else "MISSED"
        print(f"{name:<26} processor time × {processor:.3f} ({verdict}), time × {whole:.3f}", flush=True)


def _requests(world: World) -> dict[str, Callable[[], Sent]]:
    head = {
        "DocumentType": {"@odata.id": f"Systems_Documents_DocumentTypes({world.document_type})"},
        "Customer": {"@odata.id": f"Crm_Sales_Customers({world.customer})"},
    }
    line = {"Product": {"@odata.id": f"General_Products_Products({world.product})"}, "Quantity": {"Value": 2}}
    order = {**head, "Lines": [line] * 10}
    answer = orjson.loads(_handle(world, ("POST", SALES_ORDERS, order), dry=False).body)
    path = f"{SALES_ORDERS}({answer['Id']})"

    def payment_type() -> dict[str, Any]:
        return {"Code": new_guid()[-8:], "Name": {"EN": "Any"}}

    def patch() -> Sent:
        return "PATCH", path, {"ReferenceDocumentNo": new_guid()[-12:]}

    def batch() -> Sent:
        parts = [
            {"id": str(number), "method": "PATCH", "url": path, "body": patch()[2], "headers": {}}
            for number in range(10)
        ]
        return "POST", "$batch", {"requests": parts}

    def imported() -> Sent:
        kind = {"@odata.type": "Erp.Finance_Payments_PaymentType"}
        objects = [{**kind, **payment_type()} for _ in range(20)]
        return "POST", "Import", {"loggingLevel": 0, "objects": objects}

    return {
        "POST, one payment type": lambda: ("POST", "Finance_Payments_PaymentTypes", payment_type()),
        "POST, order of 10 lines": lambda: ("POST", SALES_ORDERS, order),
        "PATCH, rule fires": lambda: ("PATCH", path, {"ReferenceDocumentNo": "R"}),
        "PATCH, answer 204": patch,
        "$batch of 10 PATCHes": batch,
        "Import of 20": imported,
    }


def _ratios(world: World, make: Callable[[], Sent], turns: int) -> tuple[float, float]:
    """Median of dry runs divided by that of real requests: (of processor time, of elapsed time)."""
    processor: dict[bool, list[float]] = {True: [], False: []}
    whole: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(turns + 5):
        # Each is first in half of the turns.
        for dry in (turn % 2 == 0, turn % 2 == 1):
            sent = make()
            before = time.thread_time(), time.perf_counter()
            response = _handle(world, sent, dry=dry)
            after = time.thread_time(), time.perf_counter()
            assert response.status < 300, response.body
            if turn >= 5:  # before, caches are filled
                processor[dry].append(after[0] - before[0])
                whole[dry].append(after[1] - before[1])
    ratios = [statistics.median(each[True]) / statistics.median(each[False]) for each in (processor, whole)]
    return ratios[0], ratios[1]


def _handle(world: World, sent: Sent, *, dry: bool) -> ODataResponse:
    method, path, body = sent
    context: CallContext = world.context.with_(scopes=frozenset({"read", "update", "exec"}))
    if dry:
        context = context.with_(prefer=parse_prefer("erpnet.dry-run"))
    received = ReceivedRequest(
        method=method,
        path=path,
        query="",
        headers={"content-type": "application/json"},
        body=orjson.dumps(body),
        context=context,
        service_root="http://localhost/api/domain/odata/",
    )
    return handler.handle(received)


if __name__ == "__main__":
    main()
