"""Measured operations on a model that administrators have extended: custom entities, calculated attributes."""

from __future__ import annotations

from bench import floor
from bench.calculated import DEFINITIONS
from bench.custom_entities import DEFINE_ITEMS, ITEMS, SELECT
from bench.instance import Instance, Servers
from bench.load import Request
from bench.operations import Measured, first_product


def extend(prepared: Instance) -> None:
    """Define a custom entity with the rows of the products, and calculated attributes of products."""
    prepared.manage("shell", "-v0", "-c", DEFINE_ITEMS)
    prepared.manage("shell", "-v0", "-c", "from bench.calculated import define; define()")


def extended(servers: Servers) -> list[Measured]:
    """Reads of the extensions, compared with the floor's reads of products."""
    first, items = first_product(servers), f"{servers.root}{ITEMS}"
    queries = [
        ("custom entity by key", 0.15, f"{items}({first})?$select={SELECT}", f"/one/{first}"),
        ("custom, page of 100", 0.40, f"{items}?$top=100&$select={SELECT}", "/page/100"),
        (
            "1,000, 3 calculated",
            0.35,
            f"{servers.root}{floor.SET}?$top=1000&$select={floor.SELECT},{','.join(DEFINITIONS)}",
            "/page/1000",
        ),
    ]
    return [
        Measured(name, goal, Request("GET", ours, servers.headers), Request("GET", servers.bare + bare, {}))
        for name, goal, ours, bare in queries
    ]
