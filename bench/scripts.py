# ruff: noqa: E402  (the settings must be chosen before models are imported)
"""Cost of scripts beyond the sandbox: `.venv/bin/python -m bench.scripts` (with a database in memory).

Goals (spec 04, 4.1): a trivial script 3 ms at most over the request's own cost, a domain call 100 µs plus its query.

Host and worker alternate, so the sum of their processor times is the duration of a run on an idle machine, but for the
context switches. On a busy machine only this sum is meaningful.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("DATABASE_URL", "sqlite:///:memory:")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "platform_site.settings")

import django

django.setup()

from django.conf import settings
from django.core.management import call_command

from domain.dataset.dataset import Dataset
from identity.context import AllPermissions, CallContext
from scripts import history, services
from scripts.sandbox.limits import Limits
from scripts.sandbox.pool import SandboxPool

ENTITIES = 1_000


def main() -> None:
    """Print one line per measurement."""
    call_command("migrate", verbosity=0)
    services._pool = SandboxPool(settings.SANDBOX_WORKERS, Limits(wall_seconds=60, cpu_seconds=60))
    services.limits = lambda: Limits(wall_seconds=60, cpu_seconds=60)
    context = CallContext(user=None, permissions=AllPermissions())

    def run(source: str) -> float:
        begun = time.perf_counter()
        outcome = services.script_run(source, Dataset(context), kind="Command")
        elapsed = (time.perf_counter() - begun) * 1000
        return float(outcome.console.split("\n")[-1]) if outcome.console else elapsed

    groups = "Domain.General.Products.ProductGroupsRepository"
    create = "createNew({Code: 'G' + i, Name: 'Group ' + i, FullPath: 'G' + i})"
    run(f"for (let i = 0; i < {ENTITIES}; i++) {groups}.{create}; Transaction.commit()")

    def timed(body: str) -> str:
        return f"const t = Date.now(); {body}; console.log(Date.now() - t)"

    show("trivial script, idle pool", median(lambda: pause(run, "1"), 200), "ms")
    show("trivial script, back to back", median(lambda: run("1"), 300), "ms")
    show("the sandbox's part of it", median(lambda: bare(services._pool), 300), "ms")
    show("processor time of both in a trivial script", both(run, "1", 300), "ms")
    calls = 5_000
    per_call = run(timed(f"const c = {groups}.query(null, {{fetch: 1}})[0]; "
                         f"for (let i = 0; i < {calls}; i++) c.Notes = 'x' + i"))  # fmt: skip
    show("setting an attribute (one host call)", per_call / calls * 1000, "µs")
    one = f"{groups}.query(null, {{fetch: 1}})[0]"
    loop = f"for (let i = 0; i < {calls}; i++)"
    empty = both(run, f"const c = {one}; {loop} c.Code", 5)
    for name, body in (
        ("setting an attribute", f"const c = {one}; {loop} c.Notes = 'x' + i"),
        ("Transaction.rollback()", f"const c = {one}; {loop} Transaction.rollback()"),
        ("getById", f"const id = {one}.Id; {loop} {groups}.getById(id)"),
        ("query by code", f"{loop} {groups}.query({{Code: 'G1'}})"),
    ):
        show(f"processor time of both: {name}", (both(run, body, 5) - empty) / calls * 1000, "µs")
    read = f"for (const c of {groups}.query()) {{ c.Id; c.Code; c.Name; c.Notes; c.Active }}"
    show(f"query of {ENTITIES} product groups", median(lambda: run(timed(f"{groups}.query()")), 10), "ms")
    show("the same, reading 5 attributes of each", median(lambda: run(timed(read)), 10), "ms")
    follow = f"for (const c of {groups}.query()) c.DisplayText"
    show("the same, reading the display text of each", median(lambda: run(timed(follow)), 5), "ms")
    sets = (
        f"for (const c of {groups}.query()) for (let i = 0; i < 10; i++) c.Notes = 'n' + i + Math.random(); "
        "Transaction.commit()"
    )
    show(f"{ENTITIES * 10} attribute sets and their commit", run(timed(sets)), "ms")
    show("the same, processor time of both", both(run, sets, 3), "ms")
    show("the host's processor time in an attribute set", cpu(run, sets) / (10 * ENTITIES) * 1000, "µs")
    show(f"the host's processor time in a query of {ENTITIES}", cpu(run, read), "ms")
    history.pending.flush()
    services._pool.close()


def cpu(run: Callable[[str], float], source: str) -> float:
    """Processor time of this process in milliseconds."""
    begun = time.process_time()
    run(source)
    return (time.process_time() - begun) * 1000


def both(run: Callable[[str], float], source: str, times: int) -> float:
    """Processor time of this process and its workers in milliseconds, the median of `times` runs."""

    def spent() -> float:
        return time.process_time() + sum(worker.cpu_seconds() for worker in services.pool()._workers)

    def once() -> float:
        begun = spent()
        run(source)
        return (spent() - begun) * 1000

    return statistics.median(once() for _ in range(times))


def pause(run: Callable[[str], float], source: str) -> float:
    """A run after a pause, in which the worker prepares its next context."""
    time.sleep(0.01)
    return run(source)


def bare(pool: object) -> float:
    """A run without a bridge."""
    begun = time.perf_counter()
    pool.run("1")  # type: ignore[attr-defined]
    return (time.perf_counter() - begun) * 1000


def median(measure: Callable[[], float], times: int) -> float:
    """The median of `times` measurements."""
    return statistics.median(measure() for _ in range(times))


def show(what: str, number: float, unit: str) -> None:
    """Print a line."""
    print(f"{what:55} {number:10.3f} {unit}")


if __name__ == "__main__":
    main()
