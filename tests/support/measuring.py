"""Limits of time on machines of any speed, which others may be using too."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

#: What `_piece_of_work` takes, in seconds, where the limits of the tests were set.
_USUAL_SECONDS = 0.035
_ATTEMPTS = 3


def slowness() -> float:
    """How many times as long as usual this machine takes for the same work now; at least 1."""
    return max(1.0, statistics.median(_piece_of_work() for _ in range(5)) / _USUAL_SECONDS)


def assert_within(limit_seconds: float, measure: Callable[[], float]) -> None:
    """The measured seconds stay within the limit, on a machine of usual speed.

    Whoever else uses the machine can spoil a measurement, and then it is made again: what is wrong is wrong each time.
    The slower of the paces before and after counts.
    """
    figures: list[tuple[float, float]] = []
    before = slowness()
    for _ in range(_ATTEMPTS):
        seconds = measure()
        after = slowness()
        figures.append((seconds, limit_seconds * max(before, after)))
        if seconds <= figures[-1][1]:
            return
        before = after
    raise AssertionError(f"measured and allowed seconds, each time: {figures}")


def seconds_of(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def _piece_of_work() -> float:
    def count() -> None:
        total = 0
        for number in range(300_000):
            total += number & 7

    return seconds_of(count)
