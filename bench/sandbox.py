"""Cost of the script sandbox: `.venv/bin/python bench/sandbox.py`. No settings and no database are needed.

Goals (spec 04.1): a trivial run 3 ms at most, a host call 100 µs at most beside what answers it; 8 clients that run
50 ms scripts keep every core at work.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.sandbox.errors import ScriptLimitExceeded
from scripts.sandbox.limits import Limits
from scripts.sandbox.pool import SandboxPool
from scripts.sandbox.process import WorkerProcess

BRIDGE = "globalThis.call = (method, ...args) => host(method, ...args)"
# A prelude of the size of one that wraps a whole domain: the cost of preparing the next context.
LARGE_PRELUDE = BRIDGE + "\n" + "\n".join(
    f"function wrap{i}(target, name) {{ if (name in target) return target[name]; return call('get', name, {i}) }}"
    for i in range(400)
)  # fmt: skip
CALLS = 20_000


def main() -> None:
    with SandboxPool(os.cpu_count() or 2, Limits(wall_seconds=60, cpu_seconds=60)) as pool:
        pool.run("1")
        show("start of a worker, to its first run", median_ms(start_worker, 10), "ms")
        for name, prelude in (("small prelude", BRIDGE), ("prelude of 400 functions", LARGE_PRELUDE)):
            run = partial(pool.run, "1", prelude=prelude)
            trivial = samples_ms(run, 500, pause_seconds=0.01)
            show(f"trivial run, idle pool, {name}", statistics.median(trivial), "ms", f"p99 {p99(trivial):.2f}")
            busy = samples_ms(run, 500)
            show(f"trivial run, back to back, {name}", statistics.median(busy), "ms", f"p99 {p99(busy):.2f}")
        begun = time.process_time()
        for _ in range(500):
            pool.run("1", prelude=BRIDGE)
        show("host's processor time of a trivial run", (time.process_time() - begun) / 500 * 1000, "ms")
        show("host call, one number back", host_call_us(pool, "call('x', 1)", lambda method, arguments: 1), "µs")
        rows = [{"Id": i, "Name": f"Product {i}", "Price": i / 7} for i in range(100)]
        show("host call, 100 rows of 3 back", host_call_us(pool, "call('x', 1)", lambda m, a: rows, 2000), "µs")
        show("console.log", each_us(pool, "console.log('a line of text', i)"), "µs")
        show("kill of an endless script: over the limit by", kill_ms(pool), "ms")
        scaling(pool)


def show(what: str, number: float, unit: str, more: str = "") -> None:
    print(f"{what:60} {number:10.3f} {unit:3} {more}")


def start_worker() -> None:
    worker = WorkerProcess(Limits())
    worker.wait_ready(time.monotonic() + 10)
    worker.reap()


def samples_ms(call: Callable[[], object], count: int, pause_seconds: float = 0) -> list[float]:
    for _ in range(20):
        call()
    samples = []
    for _ in range(count):
        if pause_seconds:
            time.sleep(pause_seconds)
        begun = time.perf_counter()
        call()
        samples.append((time.perf_counter() - begun) * 1000)
    return samples


def median_ms(call: Callable[[], object], count: int) -> float:
    return statistics.median(samples_ms(call, count))


def p99(samples: list[float]) -> float:
    return sorted(samples)[int(len(samples) * 0.99)]


def host_call_us(pool: SandboxPool, call: str, answer: Callable[[str, list[Any]], Any], count: int = CALLS) -> float:
    source = f"for (let i = 0; i < {count}; i++) {call}"
    return pool.run(source, prelude=BRIDGE, host_calls=answer).duration_ms * 1000 / count


def each_us(pool: SandboxPool, statement: str) -> float:
    return pool.run(f"for (let i = 0; i < {CALLS}; i++) {statement}").duration_ms * 1000 / CALLS


def kill_ms(pool: SandboxPool) -> float:
    def kill() -> None:
        try:
            pool.run("for (;;);", limits=Limits(wall_seconds=0.1))
        except ScriptLimitExceeded:
            return

    return median_ms(kill, 10) - 100


def scaling(pool: SandboxPool) -> None:
    """Throughput of eight clients whose scripts compute for 50 ms, in cores."""
    million_ms = median_ms(lambda: pool.run("for (let i = 0; i < 1e6; i++);"), 5)
    loops = int(50 / million_ms * 1e6)
    source = f"for (let i = 0; i < {loops}; i++);"

    def elapsed(clients: int, runs: int) -> float:
        with ThreadPoolExecutor(clients) as senders:
            begun = time.perf_counter()
            list(senders.map(lambda _: pool.run(source), range(runs)))
            return (time.perf_counter() - begun) * 1000

    # Alternating, each the median of some rounds: other load on the machine affects both.
    rounds = [(elapsed(1, 20) / 20, elapsed(8, 80) / 80) for _ in range(5)]
    show("script of 50 ms, one client", statistics.median(one for one, _ in rounds), "ms")
    speedup = statistics.median(one / eight for one, eight in rounds)
    show(f"8 clients of it through one pool, cores at work (of {os.cpu_count()})", speedup, "")


if __name__ == "__main__":
    main()
