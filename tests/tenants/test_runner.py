"""Which running tenant makes room for another one (platform_site.tenants.runner)."""

from __future__ import annotations

import selectors
import time
from multiprocessing.context import ForkProcess
from pathlib import Path

from platform_site.tenants.runner import Runner, Running


class _Process(ForkProcess):
    """A process that is never started."""

    def terminate(self) -> None:
        """It does not run."""


def _runner(*idle_seconds: float | None) -> Runner:
    """A runner of tenants that have run for a minute; None for one that is still starting."""
    now = time.monotonic()
    runner = Runner(selectors.DefaultSelector(), len(idle_seconds), lambda listening: None)
    for seconds in idle_seconds:
        last_used = None if seconds is None else now - seconds
        runner.running.append(Running(_Process(), Path("log.txt"), -1, now - 60, last_used))
    return runner


def _stopping(runner: Runner) -> list[bool]:
    return [running.stop_by is not None for running in runner.running]


def test_the_one_used_least_recently_makes_room() -> None:
    runner = _runner(5, 7, 1)
    runner.stop_idle(3)
    assert _stopping(runner) == [False, True, False]
    runner.stop_idle(3)
    assert _stopping(runner) == [False, True, False], "one at a time"


def test_all_in_use_make_no_room() -> None:
    runner = _runner(1, 2)
    runner.stop_idle(3)
    assert _stopping(runner) == [False, False]


def test_one_that_starts_makes_no_room() -> None:
    """However long it takes on a busy machine: somebody waits for it, and would have it started again."""
    runner = _runner(None, 5)
    runner.stop_idle(3)
    assert _stopping(runner) == [False, True]
    runner = _runner(None, None)
    runner.stop_idle(3)
    assert _stopping(runner) == [False, False]
    runner.preempt_longest(50)
    assert _stopping(runner) == [True, False], "but its turn ends"
