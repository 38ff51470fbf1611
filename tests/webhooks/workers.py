"""Real `manage.py qcluster` processes on the database of the running test, which must commit for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

ROOT = Path(__file__).resolve().parent.parent.parent

#: Short waits in place of minutes; everything else is as in production.
FAST: Mapping[str, Any] = {
    "retry_seconds": [0.4, 0.8],
    "retry_jitter": 0,
    "sweep_seconds": 0.3,
    "lease_margin_seconds": 1,
    "breaker_open_seconds": [1, 2],
}


@contextmanager
def worker(webhooks: Mapping[str, Any] = FAST, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A task cluster of its own; killed with its children when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", "qcluster"],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.webhooks.worker_settings",
            "TEST_DATABASES": json.dumps(
                {alias: str(connections[alias].settings_dict["NAME"]) for alias in connections}
            ),
            "TEST_WEBHOOKS": json.dumps(dict(webhooks)),
            "TEST_QUEUE": settings.Q_CLUSTER["name"],
            "DATA_DIR": str(settings.DATA_DIR),
            **environment,
        },
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9 of the whole cluster: sentinel, workers, pusher and monitor at once."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)


def wait_until(condition: Callable[[], bool], timeout_seconds: float = 60) -> None:
    """Poll until it holds. Raises TimeoutError."""
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.05)
