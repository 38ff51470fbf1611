"""`make bench`: the platform against the floor, on the same server, data and machine, in one run.

    python -m bench [--seconds 2] [--rounds 5] [--postgresql postgres://…/postgres] [--only "GET by key"] [--profile]

Prints, for every measured operation, requests per second of both and their ratio: the median over the rounds, in which
the two take turns. The client shares the machine with the servers, and its cost lifts every ratio alike. Beside it
stands the processor time that the servers took for a request, and the ratio of these: what is left to compare on a
machine that is busy with something else. The last two numbers are the shares of the two processes in the platform's
requests; a run outside 35 to 65 % is not reported. A second table has the platform's p50 and p99 at 1, 8 and 64
connections. `--profile` prints instead where a request's processor time goes, by layer.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.extended import extend, extended
from bench.instance import PROCESSES, Servers, cpu_seconds, instance, serving
from bench.load import Request, answers
from bench.operations import BATCH_PARTS, Measured, batch, reading, writing
from bench.profile import print_profile
from bench.scale import print_pages
from bench.shares import FAIR, requests_by_process, shares

PRODUCTS, ORDERS = 10_000, 10_000
#: Keyed GETs per second inside a batch over those outside.
BATCH_GOAL = 4.0
#: Connections at once for which the time to an answer is printed.
LATENCIES_AT = (1, 8, 64)


@dataclass(frozen=True, slots=True)
class Pace:
    """Answers per second, and processor time of the server for each, in milliseconds.

    shares   of the processes in the requests of the platform; empty for the floor, which counts none
    """

    per_second: float
    cpu_ms: float
    shares: list[float]


@dataclass(frozen=True, slots=True)
class Way:
    """How to measure."""

    seconds: float
    rounds: int
    connections: int
    only: str

    def wants(self, name: str) -> bool:
        """Whether the operation is asked for."""
        return self.only.lower() in name.lower()


def main() -> None:
    """Prepare, check that both answer alike, measure, print."""
    parser = argparse.ArgumentParser(description="Measure the platform against a bare floor of SQL and JSON.")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side")
    parser.add_argument("--connections", type=int, default=8, help="connections that ask at once")
    parser.add_argument("--only", default="", help="operations whose name contains this")
    parser.add_argument("--profile", action="store_true", help="print where a request's processor time goes instead")
    parser.add_argument("--postgresql", default="", metavar="URL", help="on this server, in a database of its own")
    arguments = parser.parse_args()
    way = Way(arguments.seconds, arguments.rounds, arguments.connections, arguments.only)
    with instance(arguments.postgresql) as prepared:
        prepared.load(PRODUCTS, ORDERS)
        extend(prepared)
        with serving(prepared) as servers:
            operations = [
                each for each in (*reading(servers), *extended(servers), *writing(servers)) if way.wants(each.name)
            ]
            if arguments.profile:
                print_profile(operations, prepared.environment, way.seconds)
                return
            print_table(operations, servers, way, "PostgreSQL" if arguments.postgresql else "SQLite")
            print_batch(servers, way)
            print_latencies(operations, way)
            if way.wants("pages"):
                print_pages(servers)


def print_table(operations: Sequence[Measured], servers: Servers, way: Way, database: str) -> None:
    """Measure and print, a line an operation."""
    print(
        f"{database}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    print(
        f"{way.rounds} rounds of {way.seconds:g} s, {way.connections} connections, 2 server processes; "
        "median (least–most)\n"
    )
    print(
        f"{'operation':<22}{'platform/s':>11}{'floor/s':>10}   ratio               goal"
        f"{'':9}{'cpu ms':>8}{'floor':>8}  ratio  shares"
    )
    for entry in operations:
        print_line(entry, servers, way)


def print_line(entry: Measured, servers: Servers, way: Way) -> None:
    """Measure one operation and print its line."""
    for request in (entry.ours, entry.bare):
        answers(request, seconds=min(way.seconds, 0.5), connections=way.connections)
    pairs = [
        pair
        for _ in range(way.rounds)
        if is_fair((pair := (pace(entry.ours, servers, way), pace(entry.bare, servers, way)))[0])
    ]
    if not pairs:
        print(f"{entry.name:<22}not reported: one process answered more than {FAIR[1]:.0%} in each run", flush=True)
        return
    ratios = sorted(ours.per_second / bare.per_second for ours, bare in pairs)
    ratio = statistics.median(ratios)
    ours_cpu = statistics.median(ours.cpu_ms for ours, _ in pairs)
    bare_cpu = statistics.median(bare.cpu_ms for _, bare in pairs)
    verdict = "reached" if ratio >= entry.goal else "missed"
    print(
        f"{entry.name:<22}{statistics.median(ours.per_second for ours, _ in pairs):>11,.0f}"
        f"{statistics.median(bare.per_second for _, bare in pairs):>10,.0f}"
        f"   {ratio:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})   {entry.goal:.2f} {verdict:<8}"
        f"{ours_cpu:>8.2f}{bare_cpu:>8.2f}  {bare_cpu / ours_cpu if ours_cpu else 0:.2f}"
        f"  {spread_of([ours for ours, _ in pairs])}",
        flush=True,
    )


def print_batch(servers: Servers, way: Way) -> None:
    """Keyed GETs inside a batch against keyed GETs outside."""
    if not way.wants(name := f"GETs in $batch of {BATCH_PARTS}"):
        return
    single, batched = reading(servers)[0].ours, batch(servers)
    for request in (single, batched):
        answers(request, seconds=min(way.seconds, 0.5), connections=way.connections)
    pairs = [(pace(batched, servers, way), pace(single, servers, way)) for _ in range(way.rounds)]
    pairs = [(inside, outside) for inside, outside in pairs if is_fair(inside) and is_fair(outside)]
    if not pairs:
        print(f"\n{name}: not reported: one process answered more than {FAIR[1]:.0%} in each run", flush=True)
        return
    ratios = sorted(inside.per_second * BATCH_PARTS / outside.per_second for inside, outside in pairs)
    ratio = statistics.median(ratios)
    inside_cpu = statistics.median(inside.cpu_ms for inside, _ in pairs) / BATCH_PARTS
    outside_cpu = statistics.median(outside.cpu_ms for _, outside in pairs)
    verdict = "reached" if ratio >= BATCH_GOAL else "missed"
    print(
        f"\n{name}: {ratio:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}) times as many a second as outside; "
        f"goal {BATCH_GOAL:.1f} {verdict}; cpu {inside_cpu:.2f} ms, outside {outside_cpu:.2f} ms; "
        f"shares {spread_of([inside for inside, _ in pairs])}",
        flush=True,
    )


def print_latencies(operations: Sequence[Measured], way: Way) -> None:
    """The platform's p50 and p99 of each operation, by connections."""
    print("\nMilliseconds to an answer, p50 / p99, at so many connections at once")
    print(f"{'operation':<22}" + "".join(f"{connections:>20}" for connections in LATENCIES_AT))
    for entry in operations:
        found = [answers(entry.ours, seconds=way.seconds, connections=each) for each in LATENCIES_AT]
        times = (f"{each.percentile(0.5):.1f} / {each.percentile(0.99):.1f}" for each in found)
        print(f"{entry.name:<22}" + "".join(f"{each:>20}" for each in times), flush=True)


def pace(request: Request, servers: Servers, way: Way) -> Pace:
    """One measurement of the platform or the floor."""
    is_ours = request.url.startswith(servers.root)
    process = servers.platform_process if is_ours else servers.floor_process
    counted, before = requests_by_process(servers.data_dir), 0.0

    def begin() -> None:
        nonlocal counted, before
        counted, before = requests_by_process(servers.data_dir), cpu_seconds(process)

    measured = answers(request, seconds=way.seconds, connections=way.connections, begin=begin)
    used = cpu_seconds(process) - before
    spread = shares(counted, requests_by_process(servers.data_dir), PROCESSES) if is_ours else []
    return Pace(measured.count / measured.seconds, used * 1000 / max(1, measured.count), spread)


def is_fair(run: Pace) -> bool:
    """Whether both processes worked: else a run measures the chance of who accepted the connections."""
    return all(FAIR[0] <= share <= FAIR[1] for share in run.shares)


def spread_of(runs: Sequence[Pace]) -> str:
    """The shares of the processes, averaged over the runs."""
    return " ".join(f"{statistics.mean(shares):.2f}" for shares in zip(*(run.shares for run in runs), strict=True))


if __name__ == "__main__":
    main()
