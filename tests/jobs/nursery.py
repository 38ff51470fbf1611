"""Worker processes that are killed at random: `python -m tests.jobs.nursery` forks them, kills them and forks others.

NURSERY: JSON object with workers (their number), every (seconds of the processor between kills), seed, clock
("database" or the key of the Systems.Config.Config entry with the time), lease_seconds. The processes end when the
standard input does.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from datetime import datetime

import django
import psutil


def main() -> None:
    """Fork, kill, fork."""
    django.setup()
    from django.db import connections

    connections.close_all()
    options = json.loads(os.environ["NURSERY"])
    chance = random.Random(options["seed"])
    children = [Child(options) for _ in range(options["workers"])]
    print("ready", flush=True)
    kills = 0
    while True:
        position = chance.randrange(len(children))
        victim = children[position]
        # On a busy machine a worker may need longer to begin than to be killed.
        select.select([sys.stdin, victim.begun], [], [])
        end = victim.processor_seconds() + chance.uniform(0.2, 1.8) * options["every"]
        while not (is_over := bool(select.select([sys.stdin], [], [], 0.02)[0])):
            if victim.processor_seconds() >= end:
                break
        if is_over:
            break
        children[position].kill()
        children[position] = Child(options)
        kills += 1
    for child in children:
        child.kill()
    print(kills, flush=True)


class Child:
    """A forked worker. `begun` is readable once it works."""

    def __init__(self, options: dict[str, object]) -> None:
        self.begun, beginning = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            try:
                _work(options, beginning)
            finally:
                os._exit(1)
        os.close(beginning)

    def processor_seconds(self) -> float:
        """What it has worked: so it gets as far on a busy machine as on an idle one before it is killed."""
        return float(sum(psutil.Process(self._pid).cpu_times()[:2]))

    def kill(self) -> None:
        """End it as a power failure does."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self.begun)


def _work(options: dict[str, object], beginning: int) -> None:
    from django.db import DatabaseError, connection

    from foundation.clock import database_now
    from jobs.worker import Worker
    from tests.jobs.counting import register

    register()
    clock = database_now if options["clock"] == "database" else _stored_time
    worker = Worker(clock=clock, lease_seconds=float(str(options["lease_seconds"])), seconds=1, max_running=99)
    connection.ensure_connection()
    os.write(beginning, b".")
    while True:
        try:
            if not worker.work():
                time.sleep(0.01)
        except DatabaseError as exc:  # SQLite is busy for longer than its timeout
            print(exc, file=sys.stderr, flush=True)
            connection.close()


def _stored_time() -> datetime:
    from domain.entities.systems_config import ConfigEntry

    return datetime.fromisoformat(ConfigEntry._default_manager.get(key_path="clock").key_value or "")


if __name__ == "__main__":
    main()
