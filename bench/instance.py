"""Instances to measure: a database with demo data, servers as the platform starts them, their processor time."""

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

import psutil
import psycopg

from platform_site.serving import granian_server

BASE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Instance:
    """A prepared database: the environment of its processes, and its file or URL for the floor."""

    environment: dict[str, str]
    database: str

    def manage(self, *arguments: str) -> None:
        """Run a command of manage.py on it."""
        run_manage(self.environment, *arguments)

    def load(self, products: int, orders: int) -> None:
        """Fill it up to this number of mass products and orders of five lines."""
        mass = f"from domain.demo.mass_data import load_mass_data as load; load({products}, {orders}, lambda *_: None)"
        self.manage("shell", "-v0", "-c", mass)
        if not self.database.endswith(".sqlite3"):
            # As autovacuum does a minute later.
            self.manage(
                "shell", "-v0", "-c", "from django.db import connection as c; c.cursor().execute('VACUUM ANALYZE')"
            )


@contextmanager
def instance(database_url: str, size: str = "small") -> Iterator[Instance]:
    """A temporary instance: on SQLite, or in a new database on the given PostgreSQL server."""
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


#: Worker processes of each measured server.
PROCESSES = 2


def serve_platform(port: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """The platform's web server as `manage.py serve` starts it."""
    command = [sys.executable, "-c", f"from bench.instance import serve_as_installed as serve; serve({port})"]
    return subprocess.Popen(command, cwd=BASE, env=environment)


def serve_as_installed(port: int) -> None:
    """Serve without the packages of developers: pyarrow imports pandas (50 MB) if it is installed."""
    sys.meta_path.insert(0, _NoPandas())
    granian_server.serve("127.0.0.1", port, workers=PROCESSES)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=fullname)


def serve(application: str, port: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Another application under the same server, with one thread a process, the fastest for work that never waits."""
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
        """Headers of a request to the platform."""
        return {"Authorization": f"Bearer {self.token}"}


@contextmanager
def serving(prepared: Instance) -> Iterator[Servers]:
    """Start both servers, wait until they respond, and stop them at the end."""
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
        yield Servers(root, bare, token(base), servers[0].pid, servers[1].pid, data_dir, is_sqlite)
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


def cpu_seconds(process: int) -> float:
    """Processor time that a process and its running descendants have used so far."""
    times = (each.cpu_times() for each in _running(process))
    return sum(each.user + each.system for each in times)


def resident_mb(process: int) -> float:
    """Memory of a process and its running descendants; shared pages count for each of them."""
    return sum(each.memory_info().rss for each in _running(process)) / 1e6


def _running(process: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(process)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def fetch(url: str, headers: dict[str, str]) -> Any:
    """The JSON at a URL."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return json.load(answer)


def token(base: str, scope: str = "") -> str:
    """An access token of the demo's service application; by default with all of its scopes."""
    form = f"grant_type=client_credentials&client_id=ServiceDemoClient&client_secret=DEMO&scope={scope}"
    with urllib.request.urlopen(f"{base}/id/connect/token", form.encode()) as answer:
        return str(json.load(answer)["access_token"])


def free_port() -> int:
    """A port on which no process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(port: int) -> None:
    """Wait until the port accepts connections. Raises TimeoutError after a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"no process listens on port {port}")
