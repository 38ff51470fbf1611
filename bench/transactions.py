# ruff: noqa: E402  (the settings must be chosen before Django is imported)
"""Cost of Domain transactions: `.venv/bin/python bench/transactions.py`. Creates a temporary database.

Goals (spec 03, 3.2): a PATCH by key with 1,000 pending entities costs at most 1.5 times what it costs with 10; a set
query pays only for pending rows of the repositories that it touches; 10,000 inserts are committed in seconds.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="bench-transactions-")
os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
os.environ.setdefault("LOG_LEVEL", "WARNING")

import django

django.setup()

from django.core.management import call_command

from domain.dataset.dataset import Dataset
from domain.dataset.transactions import domain_transactions
from domain.odata.message.message import ODataResponse, ReceivedRequest
from domain.odata.service import handler
from identity.context import AllPermissions, CallContext

CONTEXT = CallContext(user=None, permissions=AllPermissions(), scopes=frozenset({"read", "update", "exec"}))
CURRENCIES = "General_Currencies_Currencies"
GROUPS = "General_Products_ProductGroups"


def main() -> None:
    call_command("migrate", verbosity=0)
    few, many = _Transaction(10), _Transaction(1000)
    # Alternating, so that other load on the machine affects both alike.
    patches = _in_turns(few.patch, many.patch)
    show("PATCH by key, 10 pending", patches[0], "ms")
    show("PATCH by key, 1,000 pending", patches[1], "ms", f"ratio {patches[1] / patches[0]:.2f} (at most 1.5)")
    reads = _in_turns(few.read_others, many.read_others)
    show("set query that touches none of them, 10 pending", reads[0], "ms")
    show("set query that touches none of them, 1,000 pending", reads[1], "ms", f"ratio {reads[1] / reads[0]:.2f}")
    touching = _in_turns(few.read_own, many.read_own, turns=10)
    show("set query that touches all of them, 10 pending", touching[0], "ms")
    show("set query that touches all of them, 1,000 pending", touching[1], "ms")
    begun = time.monotonic()
    many.end()
    show("EndTransaction of 1,000 inserts", time.monotonic() - begun, "s")
    begun = time.monotonic()
    ds = Dataset(CONTEXT)
    for number in range(10_000):
        ds.create("General.Currencies.Currencies", {"CurrencySign": _sign("X", number), "Name": "x"}, by_client=True)
    made = time.monotonic()
    ds.commit()
    show("10,000 inserts: create", made - begun, "s")
    show("10,000 inserts: commit", time.monotonic() - made, "s")


class _Transaction:
    """An open transaction with `pending` new currencies."""

    def __init__(self, pending: int) -> None:
        self.id = domain_transactions.transaction_begin(CONTEXT)
        self._number = 0
        with domain_transactions.opened(CONTEXT, self.id) as ds:
            made = [
                ds.create("General.Currencies.Currencies", {"CurrencySign": _sign("ab"[pending > 10], n), "Name": "x"})
                for n in range(pending)
            ]
        self.keys = [record.id for record in made]

    def send(self, method: str, path: str, body: bytes = b"", query: str = "") -> ODataResponse:
        headers = {"content-type": "application/json", "transactionid": self.id}
        answer = handler.handle(ReceivedRequest(method, path, query, headers, body, CONTEXT, "http://bench/"))
        assert answer.status < 400, answer.body
        return answer

    def patch(self) -> None:
        self._number += 1
        key = self.keys[self._number % len(self.keys)]
        self.send("PATCH", f"{CURRENCIES}({key})", b'{"Name":"n%d"}' % self._number)

    def read_others(self) -> None:
        self.send("GET", GROUPS, query="$top=10")

    def read_own(self) -> None:
        self.send("GET", CURRENCIES, query="$top=10")

    def end(self) -> None:
        self.send("POST", "EndTransaction", b"{}")


def _sign(prefix: str, number: int) -> str:
    """Four characters at most."""
    return prefix + "".join("0123456789abcdefghijklmnopqrstuvwxyz"[number // 36**place % 36] for place in range(3))


def _in_turns(*actions: Callable[[], None], turns: int = 100) -> list[float]:
    """The median time of each, in ms."""
    samples: list[list[float]] = [[] for _ in actions]
    for _ in range(turns + 5):
        for times, action in zip(samples, actions, strict=True):
            begun = time.perf_counter()
            action()
            times.append((time.perf_counter() - begun) * 1000)
    return [statistics.median(times[5:]) for times in samples]


def show(what: str, number: float, unit: str, more: str = "") -> None:
    print(f"{what:60} {number:10.3f} {unit:3} {more}", flush=True)


if __name__ == "__main__":
    main()
