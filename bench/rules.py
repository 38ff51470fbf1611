# ruff: noqa: E402  (the settings must be chosen before models are imported)
"""Cost of rules in a commit: `python -m bench.rules [--turns N] [--elsewhere N]`.

Goals (spec 05, 5.5): a commit that matches no rule costs at most 3 % more than with no rules at all; 1,000 active rules
on other repositories cost nothing measurable.

Processor time of the committing thread, in short alternating turns of the arms, so that other load on the machine
affects all of them alike. Prints the median over the turns of the ratio to the first arm. The second arm repeats the
first one, and so shows the noise of the measurement. Creates a database.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
_DIRECTORY = tempfile.TemporaryDirectory(prefix="bench-rules-")
os.environ.update(DATA_DIR=_DIRECTORY.name, DJANGO_SETTINGS_MODULE="platform_site.settings")
os.environ.pop("DATABASE_URL", None)

import django

django.setup()

from django.db import transaction

from domain.dataset.dataset import Dataset
from domain.entities.systems_bpm import UserBusinessRule
from foundation import cache_versions
from rules.index import CACHE_VERSION, rule_index
from tests.rules.cast import PRODUCTS, make_world, new_product, set_value, write_rule

if TYPE_CHECKING:
    from tests.rules.cast import World

COMMITS_A_TURN = 20
WARM_UP_COMMITS = 8
GOAL_NO_MATCH = 1.03


def main() -> None:
    """Prepare a database, write the rules, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--elsewhere", type=int, default=1000)
    options = parser.parse_args()
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, check=True)
    measure(options.turns, options.elsewhere)


def write_rules(elsewhere: int) -> World:
    """`elsewhere` rules on other repositories, and ten on products, of which five match."""
    others = (
        "Crm.Sales.Customers",
        "General.Currencies.Currencies",
        "Crm.Sales.SalesOrders",
        "General.Contacts.Persons",
    )
    with transaction.atomic():
        world = make_world()
        for number in range(elsewhere):
            repository = others[number % len(others)]
            write_rule(
                world, repository, ["COMMIT", "AGGREGATECLIENTCOMMIT"], code=f"E{number}", IsActive=False,
                conditions=[("Id", "Not_IsNull")], actions=[("WARNING", ("Interpolate", "{Id}"))],
            )  # fmt: skip
        for number in range(10):
            write_rule(
                world, PRODUCTS, ["COMMIT"], code=f"M{number}", IsActive=False,
                conditions=[("PartNumber", "Like", "N*" if number % 2 else "nothing*")],
                actions=[set_value("CatalogDescriptionHtml", "{PartNumber} is new", "Interpolate")],
            )  # fmt: skip
    return world


def switch(prefix: str) -> None:
    """Activate and compile only the rules whose codes have this prefix; "" for none."""
    UserBusinessRule.objects.update(is_active=False)
    if prefix:
        UserBusinessRule.objects.filter(code__startswith=prefix).update(is_active=True)
    cache_versions.bump(CACHE_VERSION)
    cache_versions.expire()
    rule_index()


def committer(world: World) -> Callable[[], None]:
    """A function that commits one new product."""
    numbers = iter(range(10**9))

    def commit() -> None:
        dataset = Dataset(world.context)
        new_product(dataset, world, f"N{next(numbers)}")
        dataset.commit()

    return commit


def measure(turns: int, elsewhere: int) -> None:
    """Print a line for each arm."""
    began = time.perf_counter()
    world = write_rules(elsewhere)
    print(f"{elsewhere} + 10 rules written in {time.perf_counter() - began:.1f} s")
    arms = {
        "no rules": "",
        "no rules, again (the noise)": "",
        f"{elsewhere:,} rules elsewhere": "E",
        "10 rules that match, 5 of them act": "M",
    }
    commit = committer(world)
    for _ in range(50):
        commit()
    times: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(turns):
        for name, prefix in arms.items():
            switch(prefix)
            # Garbage and cold caches of the compilation are no cost of a commit.
            gc.collect()
            for _ in range(WARM_UP_COMMITS):
                commit()
            spent = []
            for _ in range(COMMITS_A_TURN):
                started = time.thread_time()
                commit()
                spent.append(time.thread_time() - started)
            times[name].append(statistics.median(spent))
    base = times["no rules"]
    for name, medians in times.items():
        ratios = [one / other for one, other in zip(medians, base, strict=True)]
        print(f"{name:36} {statistics.median(medians) * 1000:6.2f} ms  × {statistics.median(ratios):.3f}")
    elsewhere_ratio = statistics.median(
        one / other for one, other in zip(times[f"{elsewhere:,} rules elsewhere"], base, strict=True)
    )
    print(
        f"goal: rules that do not match ≤ × {GOAL_NO_MATCH}: {'met' if elsewhere_ratio <= GOAL_NO_MATCH else 'MISSED'}"
    )
    began = time.perf_counter()
    switch("E")
    print(f"compiling {elsewhere:,} rules after one was saved: {(time.perf_counter() - began) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
