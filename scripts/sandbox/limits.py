"""Limits of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. None relies on the engine's own timer.

    wall_seconds    from the start in the worker to its result, including host calls; the worker is killed
    cpu_seconds     processor time of the worker in this run; the worker is killed
    memory_bytes    the JavaScript heap: the engine throws (an error that the script may catch); memory that the engine
                    does not count is limited by the watched resident size and the worker's address space limit
    host_calls      calls to the host; the worker is killed at the first beyond
    source_bytes    UTF-8 size of the source; refused before it reaches a worker
    console_bytes   UTF-8 size of the console, which is then truncated with a mark: no error
    message_bytes   one host call or one result, which also has at most protocol.MAX_OBJECTS objects
    answer_bytes    one result of a host call
    stack_bytes     native stack of the engine, which limits recursion; an error that the script may catch

    A pool is created with the maximum of its runs; a run can only lower the limits.
    """

    wall_seconds: float = 5.0
    cpu_seconds: float = 5.0
    memory_bytes: int = 200_000_000
    host_calls: int = 100_000
    source_bytes: int = 1_000_000
    console_bytes: int = 1_000_000
    message_bytes: int = 16_000_000
    answer_bytes: int = 32_000_000
    stack_bytes: int = 1_000_000

    def within(self, ceiling: Limits) -> Limits:
        """These limits, each at most the ceiling's."""
        return Limits(
            **{field.name: min(getattr(self, field.name), getattr(ceiling, field.name)) for field in fields(self)}
        )
