"""Tests that measure time run while no other test does: two locks on files that all test processes share."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running_beside_others(*, alone: bool) -> Iterator[None]:
    """Hold the room: shared with other tests, or alone, after those that run now have ended.

    Whoever waits for the room holds the door, so that no test after it enters first.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:  # one process
        yield
        return
    directory = Path(tempfile.gettempdir())
    with (directory / f"tests-{run}.door").open("w") as door, (directory / f"tests-{run}.room").open("w") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield  # closing gives up the room
