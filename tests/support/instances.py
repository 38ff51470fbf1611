"""Prepared instances, made once and copied for each test that needs one.

A first start migrates, collects static files, makes keys and loads the demo data: ten seconds, with the same result as
long as the product is the same. So the first test that needs an instance prepares one, kept under a digest of the
product's code, and the others copy its data directory (on PostgreSQL its database too).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from platform_site.environment import BASE_DIR, SETTINGS
from tests.support.programs import requires_program

_KEPT = BASE_DIR / ".pytest_cache" / "instances"
_ROOMS = (
    "foundation", "audit", "identity", "domain", "scripts", "rules", "webhooks", "jobs", "event_sinks", "platform_site",
)  # fmt: skip
_OUTDATED_SECONDS = 3600.0

# The calling process has settings of its own (those of the suite); none of them may reach an instance.
_OWN = frozenset(setting.name for setting in SETTINGS) | {"DJANGO_SETTINGS_MODULE"}

_PREPARE = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "platform_site.settings"
import django
django.setup()
from platform_site.serving.preparation import prepare
prepare(lambda line: None)
"""


def instance_environment(data_dir: Path, port: int, **settings: str) -> dict[str, str]:
    """The environment of an instance of its own: nothing of the caller's instance shines through."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OWN}
    return {**inherited, "DATA_DIR": str(data_dir), "PORT": str(port), "HOST": "127.0.0.1", **settings}


@contextmanager
def database_of_its_own(template: str | None = None) -> Iterator[dict[str, str]]:
    """DATABASE_URL of a new database where the suite runs on PostgreSQL; nothing where SQLite will do.

    It is empty, or a copy of the database named.
    """
    given = _postgresql()
    if not given:
        yield {}
        return
    name = f"live_{secrets.token_hex(6)}"
    with psycopg.connect(given, autocommit=True) as connection:
        create_database(connection, name, template)
        try:
            yield {"DATABASE_URL": _with_name(given, name)}
        finally:
            drop_database(connection, name)


@contextmanager
def prepared_instance(directory: Path, *, demo: bool = True) -> Iterator[dict[str, str]]:
    """Fill the new data directory from a prepared instance; the settings with which it is used."""
    original = _Original(demo=demo)
    original.make()
    shutil.copytree(original.directory, directory, dirs_exist_ok=True)
    with database_of_its_own(original.database) as settings:
        yield settings


def prepare_on_server(directory: Path, url: str) -> None:
    """Fill the new data directory, and the empty database of a server of the test's own, with a demo instance.

    The first test that needs one dumps what its first start has made; the others restore that in a few seconds.
    """
    kept = _KEPT / f"dump-{_digest_of_the_product()}"
    _KEPT.mkdir(parents=True, exist_ok=True)
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kept.exists():
            _run("psql", "--quiet", "--single-transaction", "-v", "ON_ERROR_STOP=1", "-f", f"{kept}/database.sql", url)
        else:
            _remove_outdated()
            unfinished = kept.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            _prepare(unfinished / "data", {"DEMO": "1", "DATABASE_URL": url})
            _run("pg_dump", "--no-owner", "-f", f"{unfinished}/database.sql", url)
            unfinished.rename(kept)
        shutil.copytree(kept / "data", directory, dirs_exist_ok=True)


def _prepare(directory: Path, settings: Mapping[str, str]) -> None:
    """Do what a first start does before it serves."""
    _run(sys.executable, "-c", _PREPARE, env=instance_environment(directory, 0, **settings))


def _run(program: str, *arguments: str, env: Mapping[str, str] | None = None) -> None:
    command = [requires_program(program), *arguments]
    done = subprocess.run(command, cwd=BASE_DIR, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True, slots=True)
class _Original:
    """What copies are made of."""

    demo: bool

    @property
    def name(self) -> str:
        on = "postgresql" if _postgresql() else "sqlite"
        return f"{on}-{'demo' if self.demo else 'empty'}-{_digest_of_the_product()}"

    @property
    def directory(self) -> Path:
        return _KEPT / self.name

    @property
    def database(self) -> str:
        return f"kept_{self.name.replace('-', '_')}"

    def make(self) -> None:
        """Prepare it, unless that has been done; one test process does, others wait."""
        _KEPT.mkdir(parents=True, exist_ok=True)
        with (_KEPT / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.directory.exists() and self._database_exists():
                return
            _remove_outdated()
            shutil.rmtree(self.directory, ignore_errors=True)
            unfinished = self.directory.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            settings = {"DEMO": "1"} if self.demo else {}
            if given := _postgresql():
                settings["DATABASE_URL"] = _with_name(given, self.database)
                with psycopg.connect(given, autocommit=True) as connection:
                    drop_database(connection, self.database)
                    create_database(connection, self.database, None)
            _prepare(unfinished, settings)
            unfinished.rename(self.directory)

    def _database_exists(self) -> bool:
        """On this server: the last run may have been on another one."""
        given = _postgresql()
        if not given:
            return True
        with psycopg.connect(given, autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [self.database])
            return found.fetchone() is not None


def _remove_outdated() -> None:
    """What older code prepared; not what another run may be copying at this moment."""
    for path in _KEPT.iterdir():
        if not path.is_dir() or time.time() - path.stat().st_mtime < _OUTDATED_SECONDS:
            continue
        shutil.rmtree(path, ignore_errors=True)
        if given := _postgresql():
            with psycopg.connect(given, autocommit=True) as connection, suppress(psycopg.Error):
                drop_database(connection, f"kept_{path.name.replace('-', '_')}")


@cache
def _digest_of_the_product() -> str:
    digest = hashlib.sha256(sys.version.encode())
    for room in _ROOMS:
        for path in sorted((BASE_DIR / room).rglob("*.py")):
            digest.update(f"{path.relative_to(BASE_DIR)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _postgresql() -> str:
    given = os.environ.get("DATABASE_URL", "")
    return given if given.startswith("postgres") else ""


def _with_name(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def create_database(connection: psycopg.Connection, name: str, template: str | None) -> None:
    """Create an empty database, or a copy of another one that nobody is connected to."""
    of = sql.SQL(" TEMPLATE {}").format(sql.Identifier(template)) if template else sql.SQL("")
    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)) + of)


def drop_database(connection: psycopg.Connection, name: str) -> None:
    """Remove a database, if there is one of this name."""
    # FORCE: what an instance that was killed left connected must not keep the database.
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
