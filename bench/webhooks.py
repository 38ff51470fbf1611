# ruff: noqa: E402  (the settings must be chosen before Django is imported)
"""Cost and throughput of webhooks: `.venv/bin/python -m bench.webhooks [cost|latency|throughput|backlog] [--count N]`.

Goals (spec 06, 6.2): a commit with a webhook costs at most 15 % more than without; on an idle instance the receiver has
the first byte 250 ms after the commit (p50); at least 300 deliveries a second with two worker processes to a local
receiver on two cores; a backlog of 100,000 drains at constant memory.

Creates a data directory and a database, and starts a receiver and a real qcluster.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
_DIRECTORY = tempfile.TemporaryDirectory(prefix="bench-webhooks-")
os.environ.update(
    DATA_DIR=_DIRECTORY.name,
    DJANGO_SETTINGS_MODULE="platform_site.settings",
    EGRESS_ALLOW="127.0.0.0/8",
    LOG_LEVEL="ERROR",
)

import django

django.setup()

from django.db import transaction

from bench.in_process import product_references, service_sender
from bench.instance import cpu_seconds, resident_mb
from domain.dataset.dataset import Dataset
from domain.entities.systems_bpm import UserBusinessRule
from foundation import cache_versions
from foundation.guids import new_guid
from rules.index import CACHE_VERSION
from tests.rules.cast import ORDERS, PRODUCTS, make_world, new_line, new_order, new_product, write_rule
from tests.support.receiver import LoopbackReceiver
from tests.webhooks.cast import new_currency, new_web_hook
from webhooks.outbox import deliveries_insert, deliveries_write, delivery_prepare
from webhooks.templates import web_hook_get

if TYPE_CHECKING:
    from tests.rules.cast import World

TURNS = 30
COMMITS_A_TURN = 15
LATENCY_COMMITS = 40

_RECEIVER = """
import asyncio, sys
count = 0
class Receiver(asyncio.Protocol):
    def connection_made(self, transport): self.transport, self.data = transport, b""
    def data_received(self, data):
        global count
        self.data += data
        head, separator, body = self.data.partition(b"\\r\\n\\r\\n")
        if not separator: return
        if head.startswith(b"GET"):
            text = str(count).encode()
            self.transport.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%b" % (len(text), text))
            self.data = b""
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\\r\\n")[0])
        if len(body) >= length:
            count += 1
            self.data = b""
            self.transport.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
async def main():
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("cost", "latency", "throughput", "backlog"))
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=2, help="worker processes of throughput and backlog")
    options = parser.parse_args()
    for database in ("default", *(() if os.environ.get("REDIS_URL") else ("broker",))):
        manage("migrate", "--database", database, "-v0")
    if options.what in (None, "cost"):
        measure_cost()
    if options.what in (None, "latency"):
        measure_latency()
    if options.what in (None, "throughput"):
        measure_throughput(options.count, options.workers)
    if options.what == "backlog":
        measure_throughput(max(options.count, 100_000), options.workers)


def manage(*arguments: str) -> None:
    """Run a command of the instance."""
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, check=True)


# --- cost of a commit ----------------------------------------------------------------------------------------------


def measure_cost() -> None:
    """Processor time of the committing thread with an active and with an inactive WEBHOOK rule, alternating."""
    world = make_world()
    numbers = iter(range(10**9))

    def product() -> None:
        dataset = Dataset(world.context)
        new_product(dataset, world, f"N{next(numbers)}")
        dataset.commit()

    def order(lines: int) -> Callable[[], None]:
        def commit() -> None:
            dataset = Dataset(world.context)
            created = new_order(dataset, world)
            for _ in range(lines):
                new_line(dataset, world, created)
            dataset.commit()

        return commit

    post = posting(world, numbers)
    body = '{"no": "{DocumentNo}", "on": "{DocumentDate}", "customer": "{Customer.Number}", "total": {ObjectVersion}}'
    new_web_hook("http://127.0.0.1:9/{DocumentNo}", code="O", RepositoryName=ORDERS, Body=body)
    new_web_hook("http://127.0.0.1:9/{PartNumber}", code="P", RepositoryName=PRODUCTS, Body='{"name": "{Name:EN}"}')
    for repository, code in ((ORDERS, "O"), (PRODUCTS, "P")):
        write_rule(world, repository, ["AGGREGATECLIENTCOMMIT"], actions=[("WEBHOOK", ("Constant", code))])

    def switch(active: bool) -> None:
        UserBusinessRule.objects.update(is_active=active)
        cache_versions.bump(CACHE_VERSION)
        cache_versions.expire()

    measured = (
        ("commit of a product", product),
        ("commit of an order with 2 lines", order(2)),
        ("commit of an order with 10 lines", order(10)),
        ("POST of a product", post),
    )
    for name, commit in measured:
        caller: dict[bool, list[float]] = {True: [], False: []}
        process = {True: 0.0, False: 0.0}
        for turn in range(TURNS):
            active = turn % 2 == 0
            switch(active)
            commit()
            commit()
            began_process = time.process_time()
            for _ in range(COMMITS_A_TURN):
                began = time.thread_time()
                commit()
                caller[active].append(time.thread_time() - began)
            process[active] += time.process_time() - began_process
        without, with_ = statistics.median(caller[False]) * 1000, statistics.median(caller[True]) * 1000
        print(
            f"{name:33} {without:6.2f} ms without, {with_:6.2f} ms with: {with_ / without - 1:+.1%} "
            f"(the whole process, announcing included: {process[True] / process[False] - 1:+.1%})"
        )


def posting(world: World, numbers: Iterator[int]) -> Callable[[], None]:
    """A request that creates a product, sent to the application in this process."""
    references, send = product_references(world), service_sender()

    def post() -> None:
        product = {"PartNumber": f"H{next(numbers)}", "Name": {"EN": "Posted"}, **references}
        send("POST", "General_Products_Products?$select=PartNumber,Name", product)

    return post


# --- throughput of workers ----------------------------------------------------------------------------------------


def measure_throughput(count: int, workers: int) -> None:
    """Fill the outbox, start the workers, and measure the rate at the receiver and the memory of the workers."""
    receiver = subprocess.Popen([sys.executable, "-c", _RECEIVER], stdout=subprocess.PIPE, text=True)
    assert receiver.stdout is not None
    port = int(receiver.stdout.readline())
    fill(port, count)
    cluster = start_cluster(workers)
    try:
        while received(port) == 0:
            time.sleep(0.02)
        began, first = time.perf_counter(), received(port)
        sizes: list[float] = []
        while (seen := received(port)) < count:
            time.sleep(max(0.2, count / 20_000))
            sizes.append(resident_mb(cluster.pid))
        seconds = time.perf_counter() - began
        quarter = max(1, len(sizes) // 4)
        first_mb, last_mb = statistics.mean(sizes[:quarter] or [0]), statistics.mean(sizes[-quarter:] or [0])
        print(
            f"{seen} deliveries: {(seen - first) / seconds:.0f} a second with {workers} worker processes, "
            f"{cpu_seconds(cluster.pid) / seen * 1000:.2f} ms of processor time each; "
            f"the cluster's memory {first_mb:.0f} MB at first, {last_mb:.0f} MB at last"
        )
    finally:
        os.killpg(cluster.pid, signal.SIGKILL)
        receiver.kill()
        cluster.wait()
        receiver.wait()


def start_cluster(workers: int = 2) -> subprocess.Popen[bytes]:
    """A task cluster with this number of workers, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "qcluster"],
        cwd=ROOT,
        env={**os.environ, "WORKER_PROCESSES": str(workers)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def measure_latency() -> None:
    """Time from a commit to its request on an otherwise idle instance."""
    with LoopbackReceiver().running() as receiver:
        new_web_hook(f"{receiver.url}/{{CurrencySign}}", code="LATENCY", Body='{"name": "{Name}"}')
        template = web_hook_get("LATENCY")
        assert template is not None
        record = new_currency("LAT")
        cluster = start_cluster()
        try:
            waits: list[float] = []
            for number in range(LATENCY_COMMITS + 1):
                with transaction.atomic():
                    deliveries_insert([delivery_prepare(template, record)])
                committed = time.monotonic()
                request = receiver.wait_for(number + 1, 60)[number]
                waits.append((request.at - committed) * 1000)
                time.sleep(0.3)  # until the instance is idle again
        finally:
            os.killpg(cluster.pid, signal.SIGKILL)
            cluster.wait()
    waits = sorted(waits[1:])  # the first one waited for the cluster to start
    print(
        f"commit to request, {LATENCY_COMMITS} times: p50 {statistics.median(waits):.0f} ms, "
        f"p95 {waits[int(len(waits) * 0.95)]:.0f} ms, with the load of the machine at {os.getloadavg()[0]:.1f}"
    )


def fill(port: int, count: int) -> None:
    """Insert one delivery each for `count` entities, as commits do, without waking a worker."""
    new_web_hook(f"http://127.0.0.1:{port}/in/{{CurrencySign}}", code="BENCH", Body='{"name": "{Name}"}')
    record = new_currency("BNC")
    template = web_hook_get("BENCH")
    assert template is not None
    for start in range(0, count, 5000):
        with transaction.atomic():
            deliveries_write(
                [
                    replace(delivery_prepare(template, record), entity_id=new_guid())
                    for _ in range(min(5000, count - start))
                ],
                transaction.get_connection(),
            )


def received(port: int) -> int:
    """The number of requests that the receiver has counted."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
        return int(answer.read())


if __name__ == "__main__":
    main()
