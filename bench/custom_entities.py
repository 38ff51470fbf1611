"""Cost of custom entities: `python -m bench.custom_entities [--postgresql postgres://…/postgres] [--rows 10000]`.

Goals (spec 10.3): with 500 custom entities of 5,000 attributes the first answer after a start comes at most 10 s later
than without, and requests are not slower. Beside it, reads of a custom entity that has attributes and rows of the
products against the same reads of the products. Processor time of the server is compared, since the machine may do
other things.
"""

from __future__ import annotations

import argparse
import statistics
import time

from bench import floor
from bench.instance import Instance, Servers, cpu_seconds, fetch, instance, serving
from bench.load import Request, measure_responses
from bench.operations import first_product

ENTITIES, ATTRIBUTES = 500, 10
FIRST_ANSWER_SECONDS = 10.0
#: Smaller differences are noise.
NOISE = 1.05
_ROUNDS, _SECONDS, _CONNECTIONS = 5, 2.0, 4
#: Set of an entity that has attributes and rows of the products.
ITEMS = "Custom_Bench_Items"
#: Attributes that products and items both have.
SELECT = (
    "PartNumber,Name,Active,IsFeatured,IsSerialized,ShowInCatalog,ManufacturingPolicy,GuaranteePeriodDays,"
    "CreationTime,CreationUser,UpdateTime,ProductGroup"
)

_DEFINE_MANY = f"""
from domain.dataset.dataset import Dataset
from identity.context import system_context
dataset = Dataset(system_context())
for number in range({ENTITIES}):
    entity = dataset.create("Systems.Bpm.CustomEntities", {{"Name": f"Custom.Bench.Things{{number:03}}"}})
    for place in range({ATTRIBUTES}):
        values = {{"Name": f"Member{{place}}", "AttributeType": "Text" if place % 2 else "Integer"}}
        dataset.create("Systems.Bpm.CustomEntityAttributes", values, parent=entity, collection="Attributes")
dataset.commit()
"""
#: The program that defines it and copies the products' rows.
DEFINE_ITEMS = """
from django.db import connection
from domain.dataset.dataset import Dataset
from identity.context import system_context
dataset = Dataset(system_context())
values = {"Name": "Custom.Bench.Items", "CodeAttribute": "PartNumber", "TrackChanges": True}
entity = dataset.create("Systems.Bpm.CustomEntities", values)
for name, kind, others in (
    ("PartNumber", "Text", {"MaxLength": 32, "IsUnique": True}),
    ("Name", "MultilanguageText", {"MaxLength": 254}),
    ("Active", "Boolean", {}),
    ("IsFeatured", "Boolean", {}),
    ("IsSerialized", "Boolean", {}),
    ("ShowInCatalog", "Boolean", {}),
    ("ManufacturingPolicy", "Text", {"MaxLength": 3}),
    ("GuaranteePeriodDays", "Integer", {}),
    ("ProductGroup", "Reference", {"TargetRepository": "General.Products.ProductGroups"}),
):
    values = {"Name": name, "AttributeType": kind, **others}
    dataset.create("Systems.Bpm.CustomEntityAttributes", values, parent=entity, collection="Attributes")
dataset.commit()
columns = (
    "id, object_version, aggregate_last_update_time_utc, part_number, name, active, is_featured, is_serialized, "
    "show_in_catalog, manufacturing_policy, guarantee_period_days, creation_time, creation_user, update_time, "
    "product_group_id"
)
with connection.cursor() as cursor:
    cursor.execute(f"INSERT INTO custom_bench_items ({columns}) SELECT {columns} FROM domain_product")
"""


def main() -> None:
    """Prepare an instance, measure without and with many custom entities, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgresql", default="", metavar="URL", help="on this server, in a database of its own")
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    with instance(options.postgresql) as prepared:
        prepared.load(options.rows, 0)
        prepared.manage("shell", "-v0", "-c", DEFINE_ITEMS)
        print("PostgreSQL" if options.postgresql else "SQLite")
        print("\nReads of a custom entity against the same reads of the products, ms of processor time")
        with serving(prepared) as servers:
            for name, path in _reads(servers).items():
                _print_pair(name, servers, f"{ITEMS}{path}", f"{floor.SET}{path}")
        _print_many(prepared)


def _reads(servers: Servers) -> dict[str, str]:
    """Name → the part of the URL after the set's name."""
    key = first_product(servers)
    return {"GET by key": f"({key})?$select={SELECT}", "page of 100": f"?$top=100&$select={SELECT}"}


def _print_pair(name: str, servers: Servers, custom: str, shipped: str) -> None:
    pairs = [(_cpu_ms(servers, custom), _cpu_ms(servers, shipped)) for _ in range(_ROUNDS)]
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"  {name:<16}{ours:7.3f} against {theirs:.3f}: × {ours / theirs:.2f}", flush=True)


def _print_many(prepared: Instance) -> None:
    """Compare the first response and reads of products without and with many custom entities."""
    before = _measured(prepared)
    started = time.perf_counter()
    prepared.manage("shell", "-v0", "-c", _DEFINE_MANY)
    print(f"\n{ENTITIES} custom entities of {ENTITIES * ATTRIBUTES:,} attributes ", end="")
    print(f"(defined in one commit in {time.perf_counter() - started:.1f} s)")
    after = _measured(prepared)
    later = after.pop("first answer") - before.pop("first answer")
    print(
        f"  first answer {later:.1f} s later, goal {FIRST_ANSWER_SECONDS:g}: {_verdict(later <= FIRST_ANSWER_SECONDS)}"
    )
    for name, ms in after.items():
        ratio = ms / before[name]
        print(f"  {name:<16}{ms:7.3f} ms against {before[name]:.3f}: × {ratio:.2f}, {_verdict(ratio <= NOISE)}")


def _verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def _measured(prepared: Instance) -> dict[str, float]:
    """(seconds from the server's start to its first response, processor time of reads of products in ms)."""
    started = time.perf_counter()
    with serving(prepared) as servers:
        fetch(f"{servers.root}{floor.SET}?$top=1", servers.headers)
        result = {"first answer": time.perf_counter() - started}
        for name, path in _reads(servers).items():
            result[name] = statistics.median(_cpu_ms(servers, f"{floor.SET}{path}") for _ in range(_ROUNDS))
        return result


def _cpu_ms(servers: Servers, path: str) -> float:
    """Processor time of the server for one response."""
    request = Request("GET", f"{servers.root}{path}".replace(" ", "%20"), servers.headers)
    measure_responses(request, seconds=0.3, connections=_CONNECTIONS)
    used: list[float] = []

    def note() -> None:
        used.append(cpu_seconds(servers.platform_process))

    measured = measure_responses(request, seconds=_SECONDS, connections=_CONNECTIONS, begin=note)
    note()
    return (used[1] - used[0]) * 1000 / max(1, measured.count)


if __name__ == "__main__":
    main()
