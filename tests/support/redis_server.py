"""A Redis of a test's own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import redis

from tests.support.platform import free_port
from tests.support.programs import requires_program


@contextmanager
def redis_of_its_own() -> Iterator[str]:
    """REDIS_URL of a server on a free port. Keys have no prefix, so a shared server would mix instances."""
    program, port = requires_program("redis-server", "valkey-server"), free_port()
    server = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
    )
    try:
        client = redis.Redis(port=port)
        deadline = time.monotonic() + 60
        while True:
            with suppress(redis.ConnectionError):
                client.ping()
                break
            assert time.monotonic() < deadline, "redis did not start"
            time.sleep(0.05)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(60)
