"""Prepares an instance before its start; each step runs only if a cheap check says that it is due.

A later start must be ready in five seconds, and Django's check for migrations takes most of a second. `prepared.json`
in DATA_DIR stores digests of the last preparation; its entry of a database is compared with the database, to detect
another, emptied or restored database.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from django.core.management import call_command, get_commands
from django.db import DatabaseError, connections
from django.db.migrations.exceptions import InconsistentMigrationHistory

from foundation import private_files
from foundation.encryption import key_ids
from identity.demo import holds_demo_secret
from identity.oauth.keys import key_set
from platform_site.environment import BASE_DIR
from platform_site.metrics import forget_processes
from platform_site.routers import written_databases

Report = Callable[[str], None]

# An arbitrary number that no other advisory lock uses; nodes that start together migrate one after the other.
_ADVISORY_LOCK = 7_403_116_001
_FORK = multiprocessing.get_context("fork")

# Files of former versions are kept for this time: longer than a rolling update takes, and than most pages stay open.
_FORMER_SECONDS = 7 * 24 * 3600.0
_MANIFEST = ManifestStaticFilesStorage.manifest_name
_HASHED = re.compile(r"\.[0-9a-f]{12}(\.|$)")
_COMPRESSED = re.compile(r"\.(gz|br)$")


@dataclass(slots=True)
class Prepared:
    """State of the last preparation in this DATA_DIR. databases: alias → [applied migrations, time of the first]."""

    migrations: str = ""
    databases: dict[str, list[str]] = field(default_factory=dict)
    static: str = ""
    seeded: str = ""

    @staticmethod
    def path() -> Path:
        """The file of the state."""
        return Path(settings.DATA_DIR) / "prepared.json"

    @classmethod
    def load(cls) -> Prepared:
        """Read the file; everything is due if it is missing or unreadable."""
        try:
            stored: dict[str, Any] = json.loads(cls.path().read_text())
            return cls(**stored)
        except (OSError, ValueError, TypeError):
            return cls()

    def save(self) -> None:
        """Write the file atomically."""
        private_files.write(self.path(), json.dumps(asdict(self), indent=1).encode())


def prepare(report: Report, *, collects_static: bool = True) -> None:
    """Bring database, keys, static files and (in demo mode) demo data up to date; reports only the steps that run."""
    # Files that this process and its children write are readable by this user only.
    os.umask(0o077)
    # Two starts with one DATA_DIR prepare one after the other; the second finds everything done.
    with private_files.lock(Path(settings.DATA_DIR) / "prepare.lock"):
        prepared = Prepared.load()
        _migrate(prepared, report)
        generate_keys()
        if collects_static:
            _collect_static(prepared, report)
        if settings.DEMO:
            _seed(prepared, report)
        forget_processes(settings.METRICS_DIR)
    # Children open their own connections; one held by the supervisor would block a restore or a drop.
    connections.close_all()


def prepare_pool(report: Report) -> None:
    """Do once what all tenants share: static files."""
    os.umask(0o077)
    with private_files.lock(Path(settings.DATA_DIR) / "prepare.lock"):
        # Apart, as migrations: each tenant's processes would write into the pieces of memory that it leaves.
        run_in_child_process(lambda: _collect_static(Prepared.load(), report))
        forget_processes(settings.METRICS_DIR)


def generate_keys() -> None:
    """Generate the keys that encrypt secrets and sign tokens, if there are none.

    The public halves of the signing keys are in the database, so the keys are generated at the first start.
    """
    key_ids()
    if Prepared.load().databases:
        key_set()


def has_demo_logins() -> bool:
    """Whether the database was once filled with demo data, and so has publicly known logins.

    Another node may have done it, with its own DATA_DIR, so the database is asked, too.
    """
    try:
        return bool(Prepared.load().seeded) or holds_demo_secret()
    except DatabaseError:  # it has no tables yet, or the start will say that it cannot be reached
        connections["default"].close()
        return False


def _migrate(prepared: Prepared, report: Report) -> None:
    digest = migrations_digest()
    databases = _database_states()
    if prepared.migrations == digest and prepared.databases == databases:
        return
    with _reported(report, "Preparing the database"):
        run_in_child_process(_migrate_all)
    prepared.migrations, prepared.databases = digest, _database_states()
    prepared.save()


def _migrate_all() -> None:
    for alias in written_databases():
        with _advisory_lock(alias):
            _migrate_one(alias)


def run_in_child_process(work: Callable[[], object]) -> None:
    """Run `work` in a child process. Raises RuntimeError with the text of its exception.

    The exit of the child releases the fragmented memory of migrations. In this process, it would add some six megabytes
    to each process of the instance, which are forked from it.
    """
    connections.close_all()
    receiver, sender = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_send_failure, args=(work, sender), daemon=True)
    child.start()
    sender.close()
    try:
        failure = receiver.recv()
    except EOFError:
        failure = RuntimeError("The preparation was ended from outside.")
    child.join()
    if failure is not None:
        raise failure


def _send_failure(work: Callable[[], object], sender: Connection) -> None:
    try:
        work()
    except RuntimeError as error:  # its text is a sentence for the operator
        sender.send(RuntimeError(str(error)))
    except Exception as error:
        # Not the exception itself, since not all exceptions can be unpickled.
        failure = RuntimeError(f"{type(error).__name__}: {error}")
        failure.add_note("".join(traceback.format_exception(error)))
        sender.send(failure)
    else:
        sender.send(None)
    finally:
        connections.close_all()


def _migrate_one(alias: str) -> None:
    try:
        call_command("migrate", *_apps_of(alias), database=alias, interactive=False, verbosity=0)
    except InconsistentMigrationHistory as error:
        raise RuntimeError(
            f"The {alias} database was made by another version of the platform, from which there is no way to this "
            f"one: {error} Use another DATA_DIR or DATABASE_URL."
        ) from error


def _apps_of(alias: str) -> tuple[str, ...]:
    """Apps to migrate in this database; none means all.

    The broker's database has only django-q2's tables. Running the other apps' migrations there would create nothing and
    cost as much as in the main database.
    """
    return ("django_q",) if alias == "broker" else ()


def _collect_static(prepared: Prepared, report: Report) -> None:
    digest = _static_digest()
    if prepared.static == digest and Path(settings.STATIC_ROOT).is_dir():
        return
    with _reported(report, "Collecting static files"):
        _clear_static(Path(settings.STATIC_ROOT))
        call_command("collectstatic", interactive=False, verbosity=0)
    prepared.static = digest
    prepared.save()


def _clear_static(directory: Path) -> None:
    """Delete collected files, but those that pages of a former version name only after _FORMER_SECONDS.

    Nodes of that version may run on this directory, and browsers show its pages. All other files are collected again:
    a new version's file need not be newer than the collected one. A file's time is that of its last use here.
    """
    try:
        manifest = json.loads((directory / _MANIFEST).read_text())
    except (OSError, ValueError):
        manifest = {"paths": {}}
    in_use = set(manifest["paths"].values())
    now = time.time()
    for path in [path for path in directory.rglob("*") if path.is_file()]:
        name = _COMPRESSED.sub("", path.relative_to(directory).as_posix())
        if name in in_use:
            os.utime(path, (now, now))
        elif name != _MANIFEST and not (_HASHED.search(name) and path.stat().st_mtime > now - _FORMER_SECONDS):
            path.unlink()


def _seed(prepared: Prepared, report: Report) -> None:
    born = _database_states()["default"][1]
    if prepared.seeded == born or "seed_demo" not in get_commands():
        return
    with _reported(report, "Loading the demo data"):
        # A separate process, so that the memory of seeding (caches, script workers) is released.
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
    """A digest that changes with any migration file of any app."""
    digest = hashlib.sha256()
    for app in apps.get_app_configs():
        for path in sorted(Path(app.path, "migrations").glob("*.py")):
            digest.update(f"{app.label}/{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _database_states() -> dict[str, list[str]]:
    """Alias → [number of applied migrations, time of the first]; the time identifies the database."""
    states = {}
    for alias in written_databases():
        try:
            with connections[alias].cursor() as cursor:
                cursor.execute("SELECT COUNT(*), MIN(applied) FROM django_migrations")
                states[alias] = [str(value) for value in cursor.fetchone()]
        except DatabaseError:
            states[alias] = ["0", ""]
            connections[alias].close()
    return states


def _static_digest() -> str:
    """A digest that changes when a static file is added, removed or written."""
    digest = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()


@contextmanager
def _reported(report: Report, what: str) -> Iterator[None]:
    report(f"{what} ...")
    started = time.monotonic()
    yield
    report(f"{what}: done in {time.monotonic() - started:.1f} s")


@contextmanager
def _advisory_lock(alias: str) -> Iterator[None]:
    """Hold an advisory lock, so that nodes with separate data directories but one PostgreSQL database migrate one after
    the other.
    """
    if connections[alias].vendor != "postgresql":
        yield
        return
    # A transaction-level lock: behind a pooler a session-level lock would stay with a reused session.
    holder = connections.create_connection(alias)
    holder.set_autocommit(False)
    try:
        with holder.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
        yield
    finally:
        holder.close()
