"""`make bench`: the platform against the floor, on the same server, data and machine, in one run.

    python -m bench [--seconds 2] [--rounds 3] [--postgresql postgres://…/postgres] [--only "GET by key"]

Prints, for every measured operation, requests per second of both and their ratio: the median over the rounds, in which
the two take turns. The client shares the machine with the servers, and its cost lifts every ratio alike. Beside it
stands the processor time that the servers took for a request, and the ratio of these: what is left to compare on a
machine that is busy with something else.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from dataclasses import dataclass

from bench.instance import Servers, cpu_seconds, instance, serving
from bench.load import Request, answers
from bench.operations import BATCH_PARTS, Measured, batch, reading, writing
from bench.scale import print_pages

PRODUCTS, ORDERS = 10_000, 10_000
#: Keyed GETs per second inside a batch over those outside.
BATCH_GOAL = 1.6


@dataclass(frozen=True, slots=True)
class Pace:
    """Answers per second, and processor time of the server for each, in milliseconds."""

    per_second: float
    cpu_ms: float


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
    parser.add_argument("--postgresql", default="", metavar="URL", help="on this server, in a database of its own")
    arguments = parser.parse_args()
    way = Way(arguments.seconds, arguments.rounds, arguments.connections, arguments.only)
    with instance(arguments.postgresql) as prepared:
        prepared.load(PRODUCTS, ORDERS)
        with serving(prepared) as servers:
            print_table(servers, way, "PostgreSQL" if arguments.postgresql else "SQLite")
            print_batch(servers, way)
            if way.wants("pages"):
                print_pages(servers)


def print_table(servers: Servers, way: Way, database: str) -> None:
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
        f"{'':9}{'cpu ms':>8}{'floor':>8}  ratio"
    )
    for entry in (each for each in (*reading(servers), *writing(servers)) if way.wants(each.name)):
        print_line(entry, servers, way)


def print_line(entry: Measured, servers: Servers, way: Way) -> None:
    """Measure one operation and print its line."""
    for request in (entry.ours, entry.bare):
        answers(request, seconds=min(way.seconds, 0.5), connections=way.connections)
    pairs = [
        (pace(entry.ours, servers.platform_process, way), pace(entry.bare, servers.floor_process, way))
        for _ in range(way.rounds)
    ]
    ratios = sorted(ours.per_second / bare.per_second for ours, bare in pairs)
    ratio = statistics.median(ratios)
    ours_cpu = statistics.median(ours.cpu_ms for ours, _ in pairs)
    bare_cpu = statistics.median(bare.cpu_ms for _, bare in pairs)
    verdict = "reached" if ratio >= entry.goal else "missed"
    print(
        f"{entry.name:<22}{statistics.median(ours.per_second for ours, _ in pairs):>11,.0f}"
        f"{statistics.median(bare.per_second for _, bare in pairs):>10,.0f}"
        f"   {ratio:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})   {entry.goal:.2f} {verdict:<8}"
        f"{ours_cpu:>8.2f}{bare_cpu:>8.2f}  {bare_cpu / ours_cpu if ours_cpu else 0:.2f}",
        flush=True,
    )


def print_batch(servers: Servers, way: Way) -> None:
    """Keyed GETs inside a batch against keyed GETs outside."""
    if not way.wants(name := f"GETs in $batch of {BATCH_PARTS}"):
        return
    single, batched = reading(servers)[0].ours, batch(servers)
    for request in (single, batched):
        answers(request, seconds=min(way.seconds, 0.5), connections=way.connections)
    pairs = [
        (pace(batched, servers.platform_process, way), pace(single, servers.platform_process, way))
        for _ in range(way.rounds)
    ]
    ratios = sorted(inside.per_second * BATCH_PARTS / outside.per_second for inside, outside in pairs)
    ratio = statistics.median(ratios)
    inside_cpu = statistics.median(inside.cpu_ms for inside, _ in pairs) / BATCH_PARTS
    outside_cpu = statistics.median(outside.cpu_ms for _, outside in pairs)
    verdict = "reached" if ratio >= BATCH_GOAL else "missed"
    print(
        f"\n{name}: {ratio:.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}) times as many a second as outside; "
        f"goal {BATCH_GOAL:.1f} {verdict}; cpu {inside_cpu:.2f} ms, outside {outside_cpu:.2f} ms",
        flush=True,
    )


def pace(request: Request, process: int, way: Way) -> Pace:
    """One measurement."""
    before = cpu_seconds(process)
    measured = answers(request, seconds=way.seconds, connections=way.connections)
    used = cpu_seconds(process) - before
    return Pace(measured.count / measured.seconds, used * 1000 / max(1, measured.count))


if __name__ == "__main__":
    main()
