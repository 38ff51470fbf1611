"""`make bench`: the platform against the floor, on the same server, data and machine, in one run.

    python -m bench [--seconds 2] [--rounds 5] [--postgresql postgres://…/postgres] [--only "GET by key"] [--profile]

Prints, for every measured operation, requests per second of both and their ratio: the median over the rounds, in which
the two alternate. The client runs on the same machine, and its cost raises all ratios alike. The next columns are the
processor time of the servers for a request and the ratio of these, which can be compared on a busy machine, too. The
last two numbers are the shares of the two processes in the platform's requests; a run outside 35 to 65 % is not
reported. A second table has the platform's p50 and p99 at 1, 8 and 64
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
from bench.load import Request, measure_responses
from bench.operations import BATCH_PARTS, Measured, batch, reading, writing
from bench.profile import print_profile
from bench.scale import print_pages
from bench.shares import FAIR, requests_by_process, shares

PRODUCTS, ORDERS = 10_000, 10_000
#: Goal: keyed GETs per second inside a batch, divided by those outside.
BATCH_GOAL = 4.0
#: Numbers of concurrent connections for which latencies are printed.
LATENCIES_AT = (1, 8, 64)


@dataclass(frozen=True, slots=True)
class Throughput:
    """Responses per second, and processor time of the server for each, in milliseconds.

    shares   shares of the processes in the platform's requests; empty for the floor, which does not count them
    """

    per_second: float
    cpu_ms: float
    shares: list[float]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a measurement."""

    seconds: float
    rounds: int
    connections: int
    only: str

    def selects(self, name: str) -> bool:
        """Whether the operation is selected."""
        return self.only.lower() in name.lower()


def main() -> None:
    """Prepare, check that both sides respond alike, measure, print."""
    parser = argparse.ArgumentParser(description="Measure the platform against a bare floor of SQL and JSON.")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side")
    parser.add_argument("--connections", type=int, default=8, help="concurrent connections")
    parser.add_argument("--only", default="", help="operations whose name contains this")
    parser.add_argument("--profile", action="store_true", help="print where a request's processor time goes instead")
    parser.add_argument("--postgresql", default="", metavar="URL", help="on this server, in a database of its own")
    arguments = parser.parse_args()
    options = Options(arguments.seconds, arguments.rounds, arguments.connections, arguments.only)
    with instance(arguments.postgresql) as prepared:
        prepared.load(PRODUCTS, ORDERS)
        extend(prepared)
        with serving(prepared) as servers:
            operations = [
                each
                for each in (*reading(servers), *extended(servers), *writing(servers))
                if options.selects(each.name)
            ]
            if arguments.profile:
                print_profile(operations, prepared.environment, options.seconds)
                return
            print_table(operations, servers, options, "PostgreSQL" if arguments.postgresql else "SQLite")
            print_batch(servers, options)
            print_latencies(operations, options)
            if options.selects("pages"):
                print_pages(servers)


def print_table(operations: Sequence[Measured], servers: Servers, options: Options, database: str) -> None:
    """Measure the operations, and print a line for each."""
    print(
        f"{database}, {platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    print(
        f"{options.rounds} rounds of {options.seconds:g} s, {options.connections} connections, 2 server processes; "
        "median (least–most)\n"
    )
    print(
        f"{'operation':<22}{'platform/s':>11}{'floor/s':>10}   ratio               goal"
        f"{'':9}{'cpu ms':>8}{'floor':>8}  ratio  shares"
    )
    for entry in operations:
        print_line(entry, servers, options)


def print_line(entry: Measured, servers: Servers, options: Options) -> None:
    """Measure one operation and print its line."""
    for request in (entry.ours, entry.bare):
        measure_responses(request, seconds=min(options.seconds, 0.5), connections=options.connections)
    pairs = [
        pair
        for _ in range(options.rounds)
        if is_fair(
            (
                pair := (
                    measure_throughput(entry.ours, servers, options),
                    measure_throughput(entry.bare, servers, options),
                )
            )[0]
        )
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


def print_batch(servers: Servers, options: Options) -> None:
    """Compare keyed GETs inside a batch with keyed GETs outside."""
    if not options.selects(name := f"GETs in $batch of {BATCH_PARTS}"):
        return
    single, batched = reading(servers)[0].ours, batch(servers)
    for request in (single, batched):
        measure_responses(request, seconds=min(options.seconds, 0.5), connections=options.connections)
    pairs = [
        (measure_throughput(batched, servers, options), measure_throughput(single, servers, options))
        for _ in range(options.rounds)
    ]
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


def print_latencies(operations: Sequence[Measured], options: Options) -> None:
    """The platform's p50 and p99 of each operation, by connections."""
    print("\nMilliseconds to a response, p50 / p99, by number of concurrent connections")
    print(f"{'operation':<22}" + "".join(f"{connections:>20}" for connections in LATENCIES_AT))
    for entry in operations:
        found = [measure_responses(entry.ours, seconds=options.seconds, connections=each) for each in LATENCIES_AT]
        times = (f"{each.percentile(0.5):.1f} / {each.percentile(0.99):.1f}" for each in found)
        print(f"{entry.name:<22}" + "".join(f"{each:>20}" for each in times), flush=True)


def measure_throughput(request: Request, servers: Servers, options: Options) -> Throughput:
    """One measurement of the platform or the floor."""
    is_ours = request.url.startswith(servers.root)
    process = servers.platform_process if is_ours else servers.floor_process
    counted, before = requests_by_process(servers.data_dir), 0.0

    def begin() -> None:
        nonlocal counted, before
        counted, before = requests_by_process(servers.data_dir), cpu_seconds(process)

    measured = measure_responses(request, seconds=options.seconds, connections=options.connections, begin=begin)
    used = cpu_seconds(process) - before
    spread = shares(counted, requests_by_process(servers.data_dir), PROCESSES) if is_ours else []
    return Throughput(measured.count / measured.seconds, used * 1000 / max(1, measured.count), spread)


def is_fair(run: Throughput) -> bool:
    """Whether both processes got a fair share; otherwise the run measures the distribution of connections."""
    return all(FAIR[0] <= share <= FAIR[1] for share in run.shares)


def spread_of(runs: Sequence[Throughput]) -> str:
    """The shares of the processes, averaged over the runs."""
    return " ".join(f"{statistics.mean(shares):.2f}" for shares in zip(*(run.shares for run in runs), strict=True))


if __name__ == "__main__":
    main()
