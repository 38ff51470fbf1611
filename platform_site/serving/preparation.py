"""What must be done before an instance can start, each step only when a cheap look says that it is due.

The look matters: a later start has five seconds to "ready", and asking Django whether anything is to migrate costs most
of one. `prepared.json` in DATA_DIR keeps digests of what was done last; what it says of a database is compared with the
database itself, so that another database, an emptied one or a restored one is noticed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command, get_commands
from django.db import DatabaseError, connections
from django.db.migrations.exceptions import InconsistentMigrationHistory

from foundation import private_files
from foundation.vault import key_ids
from identity.oauth.keys import key_set
from platform_site.environment import BASE_DIR
from platform_site.metrics import forget_processes

Report = Callable[[str], None]

# Any number will do that nothing else of ours locks; nodes that start together migrate one after the other.
_ADVISORY_LOCK = 7_403_116_001


@dataclass(slots=True)
class Prepared:
    """What was done last in this DATA_DIR. `databases` is alias → [applied migrations, time of the first]."""

    migrations: str = ""
    databases: dict[str, list[str]] = field(default_factory=dict)
    static: str = ""
    seeded: str = ""

    @staticmethod
    def path() -> Path:
        """The file that remembers it."""
        return Path(settings.DATA_DIR) / "prepared.json"

    @classmethod
    def load(cls) -> Prepared:
        """From the file; all due when there is none or it cannot be read."""
        try:
            stored: dict[str, Any] = json.loads(cls.path().read_text())
            return cls(**stored)
        except (OSError, ValueError, TypeError):
            return cls()

    def save(self) -> None:
        """To the file, whole or not at all."""
        private_files.write(self.path(), json.dumps(asdict(self), indent=1).encode())


def prepare(report: Report) -> None:
    """Bring database, keys, static files and (in demo mode) demo data up to date; says only what it does."""
    # What this process writes from here on, and its children after it, is for this user alone.
    os.umask(0o077)
    # Two starts on one DATA_DIR prepare one after the other; the second then finds everything done.
    with private_files.lock(Path(settings.DATA_DIR) / "prepare.lock"):
        prepared = Prepared.load()
        _migrate(prepared, report)
        generate_keys()
        _collect_static(prepared, report)
        if settings.DEMO:
            _seed(prepared, report)
        forget_processes(settings.METRICS_DIR)
    # Children open their own; a connection held by the supervisor would hold up a restore or a drop for nothing.
    connections.close_all()


def generate_keys() -> None:
    """Make the keys that encrypt secrets and that tokens are signed with, where there are none yet.

    The public halves of the latter are in the database: before the first start there is none, and the first start makes
    them.
    """
    key_ids()
    if Prepared.load().databases:
        key_set()


def holds_demo_logins() -> bool:
    """Whether this instance's database was once filled with demo data, and so knows logins that everybody knows."""
    return bool(Prepared.load().seeded)


def _migrate(prepared: Prepared, report: Report) -> None:
    digest = migrations_digest()
    databases = _database_states()
    if prepared.migrations == digest and prepared.databases == databases:
        return
    with _said(report, "Preparing the database"):
        for alias in connections:
            with _advisory_lock(alias):
                _migrate_one(alias)
    prepared.migrations, prepared.databases = digest, _database_states()
    prepared.save()


def _migrate_one(alias: str) -> None:
    try:
        call_command("migrate", *_apps_of(alias), database=alias, interactive=False, verbosity=0)
    except InconsistentMigrationHistory as error:
        raise RuntimeError(
            f"The {alias} database was made by another version of the platform, from which there is no way to this "
            f"one: {error} Use another DATA_DIR or DATABASE_URL."
        ) from error


def _apps_of(alias: str) -> tuple[str, ...]:
    """What to migrate there; nothing means everything.

    The broker's database holds django-q2's tables alone. Taking the other apps' migrations through it would create
    nothing and cost as much as the main database.
    """
    return ("django_q",) if alias == "broker" else ()


def _collect_static(prepared: Prepared, report: Report) -> None:
    digest = _static_digest()
    if prepared.static == digest and Path(settings.STATIC_ROOT).is_dir():
        return
    with _said(report, "Collecting static files"):
        call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    prepared.static = digest
    prepared.save()


def _seed(prepared: Prepared, report: Report) -> None:
    born = _database_states()["default"][1]
    if prepared.seeded == born or "seed_demo" not in get_commands():
        return
    with _said(report, "Loading the demo data"):
        # A process of its own: what seeding leaves in memory (caches, script workers) must not live in the supervisor.
        done = subprocess.run(
            [sys.executable, "manage.py", "seed_demo", "--size", "small"],
            cwd=BASE_DIR,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"The demo data could not be loaded:\n{done.stdout}{done.stderr}")
    prepared.seeded = born
    prepared.save()


def migrations_digest() -> str:
    """Changes with any migration file of any app."""
    digest = hashlib.sha256()
    for app in apps.get_app_configs():
        for path in sorted(Path(app.path, "migrations").glob("*.py")):
            digest.update(f"{app.label}/{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _database_states() -> dict[str, list[str]]:
    """Alias → [number of applied migrations, time of the first]; the time tells one database from another."""
    states = {}
    for alias in connections:
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT COUNT(*), MIN(applied) FROM django_migrations")
                states[alias] = [str(value) for value in cursor.fetchone()]
        except DatabaseError:
            states[alias] = ["0", ""]
            connections[alias].close()
    return states


def _static_digest() -> str:
    """Changes when a static file is added, removed or written."""
    digest = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


@contextmanager
def _said(report: Report, what: str) -> Iterator[None]:
    report(f"{what} ...")
    started = time.monotonic()
    yield
    report(f"{what}: done in {time.monotonic() - started:.1f} s")


@contextmanager
def _advisory_lock(alias: str) -> Iterator[None]:
    """Nodes with data directories of their own but one PostgreSQL database migrate one after the other."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_ADVISORY_LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_ADVISORY_LOCK])
