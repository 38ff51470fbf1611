"""Instances to measure: a database with demo data, servers as the platform itself starts them, their processor time."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import psycopg

from platform_site.serving import granian_server

BASE = Path(__file__).resolve().parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Instance:
    """A prepared database: the environment of processes on it, and where the floor finds it."""

    environment: dict[str, str]
    database: str

    def manage(self, *arguments: str) -> None:
        """Run a command of manage.py on it."""
        run_manage(self.environment, *arguments)

    def load(self, products: int, orders: int) -> None:
        """Make it so many mass products and orders of five lines; what is there already stays."""
        mass = f"from domain.demo.mass_data import load_mass_data as load; load({products}, {orders}, lambda *_: None)"
        self.manage("shell", "-v0", "-c", mass)
        if not self.database.endswith(".sqlite3"):
            # What autovacuum would have done a minute later.
            self.manage(
                "shell", "-v0", "-c", "from django.db import connection as c; c.cursor().execute('VACUUM ANALYZE')"
            )


@contextmanager
def instance(database_url: str, size: str = "small") -> Iterator[Instance]:
    """An instance of its own, removed afterwards: on SQLite, or in a new database on the PostgreSQL server given."""
    directory = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        if not database_url:
            yield Instance(prepare(directory, size), str(directory / "platform.sqlite3"))
            return
        with _database_on(database_url) as url:
            yield Instance(prepare(directory, size, url), url)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _database_on(url: str) -> Iterator[str]:
    name = f"bench_{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            yield f"{url.rpartition('/')[0]}/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def prepare(directory: Path, size: str, database_url: str = "") -> dict[str, str]:
    """A migrated instance with demo data; the environment of its processes."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "platform_site.settings",
        "DATA_DIR": str(directory),
        "DEMO": "1",
        "LOG_LEVEL": "ERROR",
        "LICENSE_SESSIONS": "100",
    }
    for name in ("DATABASE_URL", "REDIS_URL"):
        environment.pop(name, None)
    if database_url:
        environment["DATABASE_URL"] = database_url
    run_manage(environment, "migrate", "-v0")
    if not database_url:
        run_manage(environment, "migrate", "-v0", "--database", "broker")
    run_manage(environment, "collectstatic", "--noinput", "-v0")
    run_manage(environment, "seed_demo", "--size", size)
    return environment


def run_manage(environment: dict[str, str], *arguments: str) -> None:
    """Run a command of manage.py; CalledProcessError when it fails."""
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=BASE, env=environment, check=True, stdout=sys.stderr)


#: Of each server that is measured.
PROCESSES = 2


def serve_platform(port: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """The platform's web server as `manage.py serve` starts it."""
    command = [sys.executable, "-c", f"from bench.instance import serve_as_installed as serve; serve({port})"]
    return subprocess.Popen(command, cwd=BASE, env=environment)


def serve_as_installed(port: int) -> None:
    """Serve without the packages of developers: pyarrow imports pandas, of 50 MB, where it is installed."""
    sys.meta_path.insert(0, _NoPandas())
    granian_server.serve("127.0.0.1", port, workers=PROCESSES)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)


def serve(application: str, port: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Another application under the same server, one thread a process: what suits work that never waits best."""
    command = [
        sys.executable, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(port),
        "--workers", str(PROCESSES), "--blocking-threads", "1", "--no-access-log", "--log-level", "error", application,
    ]  # fmt: skip
    return subprocess.Popen(command, cwd=BASE, env=environment)


@dataclass(frozen=True, slots=True)
class Servers:
    """The platform and the floor on the same data."""

    root: str
    bare: str
    token: str
    platform_process: int
    floor_process: int
    data_dir: Path
    is_sqlite: bool

    @property
    def headers(self) -> dict[str, str]:
        """What a caller of the platform sends."""
        return {"Authorization": f"Bearer {self.token}"}


@contextmanager
def serving(prepared: Instance) -> Iterator[Servers]:
    """Both servers, ready; stopped afterwards."""
    port, bare_port = free_port(), free_port()
    base = f"http://127.0.0.1:{port}"
    root = f"{base}/api/domain/odata/"
    data_dir = Path(prepared.environment["DATA_DIR"])
    floor = {**os.environ, "FLOOR_DATABASE": prepared.database, "FLOOR_ROOT": root}
    servers = [
        serve_platform(port, {**prepared.environment, "BASE_URL": base}),
        serve("bench.floor:application", bare_port, floor),
    ]
    try:
        wait_for(port)
        wait_for(bare_port)
        bare, is_sqlite = f"http://127.0.0.1:{bare_port}", prepared.database.endswith(".sqlite3")
        yield Servers(root, bare, token(port), servers[0].pid, servers[1].pid, data_dir, is_sqlite)
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


def cpu_seconds(process: int) -> float:
    """Processor time that a process and its children have used so far; 0 where the system does not tell."""
    parents: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(path.parent.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    family, total = {process}, 0
    while family:
        total += sum(parents[each][1] for each in family if each in parents)
        family = {each for each, (parent, _) in parents.items() if parent in family}
    return total / _TICKS


def fetch(url: str, headers: dict[str, str]) -> Any:
    """The JSON at an address."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return json.load(answer)


def token(port: int) -> str:
    """An access token of the demo's service application."""
    form = "grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/id/connect/token", form.encode()) as answer:
        return str(json.load(answer)["access_token"])


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(port: int) -> None:
    """Until somebody accepts connections; TimeoutError after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")
