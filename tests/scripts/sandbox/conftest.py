"""Pools of real workers. Limits are short, so that a hundred hostile scripts fit in a coffee break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from scripts.sandbox.errors import HostCallError
from scripts.sandbox.limits import Limits
from scripts.sandbox.pool import SandboxPool

SHORT = Limits(
    wall_seconds=0.5,
    cpu_seconds=0.5,
    memory_bytes=60_000_000,
    host_calls=2_000,
    source_bytes=1_000_000,
    console_bytes=20_000,
    message_bytes=4_000_000,
)

# For what is to come to its end, on a machine with better things to do.
PATIENT = replace(SHORT, wall_seconds=20.0, cpu_seconds=20.0)

# Lets a script reach the host through one function, as the product's own prelude does through many.
BRIDGE = """
globalThis.call = (method, ...args) => host(method, ...args);
"""


def answer(method: str, arguments: list[Any]) -> Any:
    """The host's side of the tests' bridge."""
    if method == "echo":
        return arguments[0] if arguments else None
    if method == "add":
        return arguments[0] + arguments[1]
    if method == "refuse":
        raise HostCallError("refused", 2029, "ValidationFailed", {"target": "Code"})
    raise HostCallError(f"no such call: {method}", None, "TypeError")


@pytest.fixture(scope="session")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(2, PATIENT, wait_seconds=20) as shared:
        yield shared
