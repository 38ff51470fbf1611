"""Cost of long responses of the Table API: `python -m bench.tables [--rows 1000000] [--postgresql URL] [--rounds 3]`.

The floor is a bare cursor and the same encoder in a separate process (bench.table_floor), which discards its output.
Floor and platform alternate. Prints for each format: seconds, time to the first byte, and the platform's share of the
floor, by elapsed and by processor time; then the maximum memory of a web process with a slow client and a disconnected
one; then the latencies of the Domain API with and without two concurrent long responses.

Goals (spec 11, 11.1): 1,000,000 rows of 12 columns in 60 s as JSON and 25 s as Arrow, 0.6 and 0.5 of the floor; the
first byte after 200 ms; 120 MB; the p99 of the Domain API at most doubles.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from bench.instance import BASE, Instance, Servers, cpu_seconds, instance, serving

#: Column of the Table API, member of ColumnType, column of the database; decimals have 18 digits, 6 after the point.
COLUMNS = (
    ("Id", "GUID", "id"),
    ("Part_Number", "STRING", "part_number"),
    ("Name", "JSON", "name"),
    ("Product_Group_Id", "GUID", "product_group_id"),
    ("Base_Measurement_Category_Id", "GUID", "base_measurement_category_id"),
    ("Active", "BOOL", "active"),
    ("Is_Featured", "BOOL", "is_featured"),
    ("Is_Serialized", "BOOL", "is_serialized"),
    ("Scrap_Rate", "DECIMAL", "scrap_rate"),
    ("Creation_Time", "DATETIME", "creation_time"),
    ("Creation_User", "STRING", "creation_user"),
    ("Object_Version", "INTEGER", "object_version"),
)
FORMATS = ("json", "ndjson", "csv", "arrow", "parquet")
_ENTITIES = "General_Products_Products"
_QUICK_SECONDS = 15.0
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sent:
    """A long response: seconds to its first and last byte, processor time of the server, bytes."""

    first: float
    whole: float
    cpu: float
    size: int


class Analyst:
    """A client that reads and discards tables."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._parts = urlsplit(servers.root)

    def begin(self, path: str) -> socket.socket:
        """Send a GET."""
        connection = socket.create_connection((self._parts.hostname or "", self._parts.port or 80))
        head = f"GET {quote(path, safe='/?$=&,')} HTTP/1.1\r\nHost: {self._parts.netloc}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in self._servers.headers.items())
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        return connection

    def read(self, form: str) -> Sent:
        """Read a whole table."""
        used, started = cpu_seconds(self._servers.platform_process), time.perf_counter()
        with self.begin(table(form)) as connection:
            head = connection.recv(64)
            first = time.perf_counter() - started
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"the platform answered {head!r}")
            size = len(head)
            while part := connection.recv(_MEGABYTE):
                size += len(part)
        whole = time.perf_counter() - started
        return Sent(first, whole, cpu_seconds(self._servers.platform_process) - used, size)


def table(form: str) -> str:
    """The path of the table in a format."""
    return f"/tableapi/odata/Gen_Products?$select={','.join(name for name, _, _ in COLUMNS)}&$format={form}"


def measure(prepared: Instance, forms: Sequence[str], rounds: int) -> None:
    """Print all figures."""
    print(f"load of the machine at the beginning: {os.getloadavg()[0]:.1f}")
    with serving(prepared) as servers:
        analyst = Analyst(servers)
        for form in forms:
            _compare(analyst, prepared, form, rounds)
        _print_memory(analyst, servers, forms)
        _print_latency(servers)


def _compare(analyst: Analyst, prepared: Instance, form: str, rounds: int) -> None:
    analyst.read(form)
    bare, ours = list[tuple[float, float]](), list[Sent]()
    for _ in range(rounds):
        command = [sys.executable, "-m", "bench.table_floor", form, prepared.database]
        told = subprocess.run(command, cwd=BASE, env=prepared.environment, check=True, capture_output=True, text=True)
        seconds, cpu, _size = told.stdout.split()
        bare.append((float(seconds), float(cpu)))
        ours.append(analyst.read(form))
    share = statistics.median(least[0] / each.whole for least, each in zip(bare, ours, strict=True))
    cpu_share = statistics.median(least[1] / each.cpu for least, each in zip(bare, ours, strict=True))
    print(
        f"  {form:<8}{min(each.whole for each in ours):7.2f} s, floor {min(each[0] for each in bare):6.2f} s: "
        f"{share:.2f} of the floor by the clock, {cpu_share:.2f} by processor time; first byte "
        f"{min(each.first for each in ours) * 1000:4.0f} to {max(each.first for each in ours) * 1000:4.0f} ms; "
        f"{ours[0].size / _MEGABYTE:.0f} MB",
        flush=True,
    )


def _print_memory(analyst: Analyst, servers: Servers, forms: Sequence[str]) -> None:
    """Print the maximum memory of a web process beyond its memory between two long responses."""
    before = {pid: _resident(pid, is_new=True) for pid in _web_processes(servers)}
    slow = analyst.begin(table("json"))
    gone = analyst.begin(table("json"))
    gone.recv(_MEGABYTE)
    gone.close()
    for form in forms:
        slow.recv(65536)
        analyst.read(form)
    most = max(_resident(pid) - least for pid, least in before.items())
    slow.close()
    print(
        f"  memory with a slow client and a disconnected one: {most / _MEGABYTE:.0f} MB more than before",
        flush=True,
    )


def _web_processes(servers: Servers) -> list[int]:
    return [
        int(pid) for pid in _read(f"/proc/{servers.platform_process}/task/{servers.platform_process}/children").split()
    ]


def _resident(pid: int, *, is_new: bool = False) -> int:
    """Peak memory of the process; is_new: restarts its measurement now."""
    if is_new:
        with open(f"/proc/{pid}/clear_refs", "w") as file:
            file.write("5")
    (line,) = (line for line in _read(f"/proc/{pid}/status").splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _print_latency(servers: Servers) -> None:
    idle = _latencies(servers)
    with _endless_readers(servers, ("json", "arrow")):
        busy = _latencies(servers)
    for name, share in (("median", 0.5), ("p99", 0.99)):
        least, most = (sorted(times)[int(len(times) * share)] * 1000 for times in (idle, busy))
        print(
            f"  Domain API, {name:<6} {least:6.2f} ms alone, {most:6.2f} ms with two long responses: {most / least:.2f}"
        )


def _latencies(servers: Servers) -> list[float]:
    """Seconds of keyed reads and pages in turn, over one connection."""
    analyst, times = Analyst(servers), list[float]()
    paths = (f"{_ENTITIES}?$top=50&$orderby=PartNumber", f"{_ENTITIES}?$filter=PartNumber eq 'M0000007'")
    end = time.perf_counter() + _QUICK_SECONDS
    for path in itertools.cycle(paths):
        started = time.perf_counter()
        if started > end:
            return times
        with analyst.begin(f"/api/domain/odata/{path}") as connection:
            while connection.recv(_MEGABYTE):
                pass
        times.append(time.perf_counter() - started)
    return times


@contextmanager
def _endless_readers(servers: Servers, forms: Sequence[str]) -> Iterator[None]:
    context = multiprocessing.get_context("fork")
    readers = [context.Process(target=_read_on, args=(servers, form), daemon=True) for form in forms]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        for reader in readers:
            reader.terminate()
            reader.join()


def _read_on(servers: Servers, form: str) -> None:
    analyst = Analyst(servers)
    while True:
        analyst.read(form)


def main() -> None:
    """Prepare and measure."""
    parser = argparse.ArgumentParser(description="Measure long responses of the Table API.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--postgresql", default="", metavar="URL", help="on this server, in a database of its own")
    arguments = parser.parse_args()
    with instance(arguments.postgresql) as prepared:
        prepared.load(arguments.rows, 0)
        print("PostgreSQL" if arguments.postgresql else "SQLite")
        measure(prepared, arguments.formats.split(","), arguments.rounds)


if __name__ == "__main__":
    main()
