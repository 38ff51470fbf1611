"""PostgreSQL servers of a test's own: a primary and its streaming replicas. Nothing of them is kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.deploy.dockerfile import DEPLOY
from tests.support.platform import free_port
from tests.support.programs import requires_program
from tests.support.waiting import eventually

#: Beside the settings of the samples: nothing waits for a disk, and little is kept.
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "wal_keep_size": "64MB",
}


@dataclass(frozen=True)
class Server:
    """A server's data directory, how to reach it, and the sample in deploy/ whose settings it has."""

    directory: Path
    port: int
    sample: Path

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def name(self) -> str:
        """As the platform names a replica."""
        return f"127.0.0.1:{self.port}"

    def query(self, text: str) -> list[tuple[object, ...]]:
        """The rows of a statement."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        settings = re.findall(r"^(\w+) = (\S+)$", self.sample.read_text(), re.M)
        options = " ".join(f"-c {name}={value}" for name, value in (*settings, *_OPTIONS.items()))
        options += f" -p {self.port} -k {self.directory}"
        _run("pg_ctl", "-D", f"{self.directory}/data", "-l", f"{self.directory}/log", "-w", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """immediate: as if the machine had lost its power."""
        _run("pg_ctl", "-D", f"{self.directory}/data", "-m", mode, "-w", "stop")

    def set(self, name: str, value: str) -> None:
        """Change a setting that needs no new start."""
        self.query(f"ALTER SYSTEM SET {name} = '{value}'")
        self.query("SELECT pg_reload_conf()")

    def follow(self, standby: Server, primary: Server) -> None:
        """Follow a standby of the primary instead of the primary itself, and have no more than that one has."""
        self.set("primary_conninfo", f"host=127.0.0.1 port={standby.port} user=postgres")
        assert eventually(lambda: standby.query("SELECT count(*) FROM pg_stat_replication") == [(1,)], 60)
        ((position,),) = primary.query("SELECT pg_current_wal_flush_lsn()")
        assert eventually(lambda: standby.query(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") == [(True,)], 60)

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the server."""
        main = (self.directory / "data" / "postmaster.pid").read_text().split("\n", 1)[0]
        found = subprocess.run(["pgrep", "-P", main], capture_output=True, text=True, check=False)
        for process in (main, *found.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(int(process), number)


@contextmanager
def replicated_servers(replicas: int) -> Iterator[tuple[Server, list[Server]]]:
    """A primary and so many replicas of it. They stop with the block."""
    with ExitStack() as stack:
        primary = _new_server(stack, "primary.conf")
        _run("initdb", "-D", f"{primary.directory}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8",
             "--locale=C.UTF-8", "--no-sync")  # fmt: skip
        _started(primary, stack)
        yield primary, [stack.enter_context(standby_of(primary)) for _ in range(replicas)]


@contextmanager
def standby_of(server: Server) -> Iterator[Server]:
    """A replica that follows the primary. It stops with the block."""
    with ExitStack() as stack:
        standby = _new_server(stack, "replica.conf")
        _run("pg_basebackup", "-d", server.url, "-D", f"{standby.directory}/data", "-R", "-c", "fast", "--no-sync")
        _started(standby, stack)
        yield standby


def _new_server(stack: ExitStack, sample: str) -> Server:
    # Not in the tests' own directory, which only this user may enter.
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="postgresql-", ignore_cleanup_errors=True)))
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(directory, "postgres")
    return Server(directory, free_port(), DEPLOY / "postgresql" / sample)


def _started(server: Server, stack: ExitStack) -> None:
    server.start()
    stack.callback(_stop_quietly, server)


def _stop_quietly(server: Server) -> None:
    with suppress(subprocess.CalledProcessError):
        server.stop()


def _run(program: str, *arguments: str) -> None:
    # Debian keeps a server's programs off the PATH, a directory for each version.
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    path = requires_program(program, *map(str, kept))
    command = [path, *arguments]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    # Not a pipe: the server would hold it.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, cwd="/", check=False)
        if done.returncode:
            said.seek(0)
            raise RuntimeError(f"{program}: {said.read()}")


__all__ = ["Server", "replicated_servers", "standby_of"]
