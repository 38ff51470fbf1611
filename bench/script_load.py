"""Scripts through HTTP beside other requests: `.venv/bin/python -m bench.script_load [--seconds 4] [--rounds 5]`.

Goals (spec 04, 4.1; issue 7): 8 clients whose scripts compute for 50 ms keep every core at work; endless scripts leave
the p99 of other requests at most twice that of an idle instance. Starts an instance.

Rounds alternate the two sides, and ratios are computed within a round: other load on the machine slows both down.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.instance import token
from tests.support.platform import LivePlatform, start_platform

CLIENTS = 8
LONG_MS = 50.0
HOSTILE = ("for (;;);", "for (;;) Transaction.rollback()")


class Client:
    """A persistent connection with a token."""

    def __init__(self, platform: LivePlatform, token: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(platform.base_url).netloc, timeout=60)
        self._path = urlsplit(platform.odata_url).path
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def get(self, path: str) -> int:
        """The status of the response."""
        return self._ask("GET", path, None)[0]

    def execute(self, source: str) -> tuple[int, bytes]:
        """Status and body of ExecuteScript."""
        return self._ask("POST", "ExecuteScript", source)

    def _ask(self, method: str, path: str, body: str | None) -> tuple[int, bytes]:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "text/plain"}
        self._connection.request(method, self._path + path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()


def main() -> None:
    """Start, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with start_platform(settings={"RATE_LIMIT_PER_MINUTE": "0"}) as platform:
        service_token = token(platform.base_url, "DomainApi+read+exec")
        overhead(platform, service_token)
        scaling(platform, service_token, options.rounds)
        for source in HOSTILE:
            latency(platform, service_token, source, options.seconds, options.rounds)


def overhead(platform: LivePlatform, token: str) -> None:
    """Compare a trivial script with a request of the same kind without a script."""
    client = Client(platform, token)
    pairs = [
        (timed(lambda: client.execute("1")), timed(lambda: client.get("Crm_Customers?$top=0"))) for _ in range(300)
    ]
    script = statistics.median(one for one, _ in pairs)
    plain = statistics.median(other for _, other in pairs)
    print(f"trivial script {script:.2f} ms, GET of nothing {plain:.2f} ms, difference {script - plain:.2f} ms")


def scaling(platform: LivePlatform, token: str, rounds: int) -> None:
    """Compare the throughput of 8 clients with that of one."""
    first = Client(platform, token)
    million = statistics.median(timed(lambda: first.execute("for (let i = 0; i < 1e6; i++);")) for _ in range(9))
    empty = statistics.median(timed(lambda: first.execute("1")) for _ in range(20))
    source = f"for (let i = 0; i < {int(LONG_MS / (million - empty) * 1e6)}; i++);"
    ratios = []
    for _ in range(rounds):
        one = elapsed(platform, token, source, 1, 16)
        eight = elapsed(platform, token, source, CLIENTS, 64 // CLIENTS * 2)
        ratios.append((one / 16) / (eight / (64 // CLIENTS * 2 * CLIENTS)))
    print(f"{CLIENTS} clients of {LONG_MS:g} ms scripts: × {statistics.median(ratios):.2f} of one's work "
          f"({os.cpu_count()} cores; rounds {' '.join(f'{ratio:.2f}' for ratio in ratios)})")  # fmt: skip


def elapsed(platform: LivePlatform, token: str, source: str, clients: int, runs: int) -> float:
    """Milliseconds until every client has finished `runs` runs."""

    def work() -> None:
        client = Client(platform, token)
        for _ in range(runs):
            status, body = client.execute(source)
            assert status == 200, body

    threads = [threading.Thread(target=work) for _ in range(clients)]

    def together() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return timed(together)


def latency(platform: LivePlatform, token: str, hostile: str, seconds: float, rounds: int) -> None:
    """Compare the p99 of a GET beside two clients of the hostile script with the p99 without them."""
    client = Client(platform, token)
    path = "General_Products_Products?$top=20"
    assert client.get(path) == 200
    ratios = []
    for _ in range(rounds):
        idle = samples(lambda: client.get(path), seconds / 2)
        with beside(platform, token, hostile):
            busy = samples(lambda: client.get(path), seconds)
        ratios.append((p99(busy) / p99(idle), statistics.median(busy) / statistics.median(idle)))
        print(f"   idle p50 {statistics.median(idle):.1f} p99 {p99(idle):.1f} ms, "
              f"beside p50 {statistics.median(busy):.1f} p99 {p99(busy):.1f} ms")  # fmt: skip
    print(f"GET beside two of `{hostile}`: p99 × {statistics.median(r for r, _ in ratios):.2f}, "
          f"median × {statistics.median(r for _, r in ratios):.2f}")  # fmt: skip


@contextmanager
def beside(platform: LivePlatform, token: str, source: str) -> Iterator[None]:
    """Within the block, two clients repeat the script."""
    stop = threading.Event()

    def work() -> None:
        client = Client(platform, token)
        while not stop.is_set():
            client.execute(source)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def samples(request: Callable[[], object], seconds: float) -> list[float]:
    """Milliseconds of each request sent within the time."""
    found = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        found.append(timed(request))
    return found


def timed(request: Callable[[], object]) -> float:
    """Milliseconds of the request."""
    begun = time.perf_counter()
    request()
    return (time.perf_counter() - begun) * 1000


def p99(found: list[float]) -> float:
    """The 99th percentile of the samples."""
    return sorted(found)[int(len(found) * 0.99)]


if __name__ == "__main__":
    main()
