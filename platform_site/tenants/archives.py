"""Backups of tenants: one archive with the database, the keys and the files, as of one moment of the database.

tenant.json       name of the tenant, kind of its database, version of the format
tenant.env        its settings
data/…            keys, secrets and files of DATA_DIR; with SQLite `platform.sqlite3`, copied while it is in use
database.dump     of PostgreSQL, by pg_dump
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, Final

from foundation import private_files
from platform_site.environment import Environment
from platform_site.tenants.directory import Tenant, add, check_name, settings_get
from platform_site.tenants.tenant_settings import TenantError

_FORMAT: Final = 1
_SQLITE: Final = "platform.sqlite3"
_DUMP: Final = "database.dump"
#: What an instance makes anew (docs/operations.md, "Back up and restore").
_NOT_KEPT: Final = frozenset(
    {"cache", "metrics", "static", "counters.bin", "kept_texts.bin", "change_signals.bin", "prepare.lock"}
)


def back_up(tenant: Tenant, file: Path) -> None:
    """Write the archive, readable by this user only; the tenant may be in use. Raises TenantError."""
    url = settings_get(tenant).values.get("DATABASE_URL", "")
    with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=f".{file.name}-") as directory:
        written = Path(directory) / "archive"
        described = {"format": _FORMAT, "name": tenant.name, "database": "postgresql" if url else "sqlite"}
        with _opened(written, "w:gz") as archive:
            _add_bytes(archive, "tenant.json", json.dumps(described).encode())
            _add_bytes(archive, "tenant.env", tenant.settings_file.read_bytes())
            # The database first: keys that it names are never newer than those that are added after it.
            copy = Path(directory) / "database"
            if url:
                _run("pg_dump", "--format=custom", "--no-owner", f"--file={copy}", url=url)
                archive.add(copy, _DUMP)
            else:
                _copy_sqlite(tenant.data / _SQLITE, copy)
                archive.add(copy, f"data/{_SQLITE}")
            for path in sorted(tenant.data.rglob("*")):
                if _is_kept(path.relative_to(tenant.data)) and path.is_file() and not path.is_symlink():
                    archive.add(path, f"data/{path.relative_to(tenant.data)}", recursive=False)
        with written.open("rb+") as flushed:
            os.fsync(flushed.fileno())
        written.chmod(0o600)
        written.replace(file)


def restore(name: str, file: Path, root: Path, database_url: str = "") -> Tenant:
    """Put the tenant back into the state of the archive; it is stopped meanwhile. Call within `changing`.

    A tenant that is there keeps its settings; one that is not gets those of the archive, but the database in PostgreSQL
    that the operator names: an archive must not say which one is emptied. Raises TenantError.
    """
    check_name(name)
    with tempfile.TemporaryDirectory(dir=root, prefix=".restored-") as directory:
        unpacked = Path(directory)
        described = _unpack(file, unpacked)
        if described.get("name") != name:
            # Its keys would be those of the other tenant, and so its tokens accepted by both.
            raise TenantError(f"{file} is a backup of {described.get('name')!r}, and is restored as that only.")
        tenant, is_new = Tenant(root / name), not (root / name).exists()
        if is_new:
            add(name, _settings_of_new(name, Tenant(unpacked).settings(), database_url))
        elif database_url:
            raise TenantError(f"{name} keeps its settings: without --database-url.")
        try:
            with tenant.stopped():
                _replace(tenant, unpacked, described.get("database", ""))
        except BaseException:
            if is_new:
                shutil.rmtree(tenant.path)
            raise
        if is_new:
            tenant.suspend(is_suspended=False)
        return tenant


def _settings_of_new(name: str, kept: dict[str, str], database_url: str) -> dict[str, str]:
    if kept.get("DATABASE_URL") and not database_url:
        raise TenantError(f"{name} is not there: name its database, which will be emptied, with --database-url.")
    others = {each: value for each, value in kept.items() if each not in ("DATABASE_URL", "DATABASE_REPLICA_URLS")}
    return {**others, **({"DATABASE_URL": database_url} if database_url else {})}


def _replace(tenant: Tenant, unpacked: Path, database: str) -> None:
    url = settings_get(tenant).values.get("DATABASE_URL", "")
    if (database == "postgresql") != bool(url):
        raise TenantError(f"The backup has a database of {database}, and {tenant.name} has another one.")
    if url:
        # In one transaction: a restore that fails leaves the database as it was. What was made after the backup goes.
        script = unpacked / "database.sql"
        _run("pg_restore", "--no-owner", f"--file={script}", str(unpacked / _DUMP))
        begin = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
        words = ("--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--command={begin}")
        _run("psql", *words, f"--file={script}", url=url)
    # Also what the archive has not: the broker's tasks and caches are of the state that is replaced.
    former = tenant.path / ".data.former"
    shutil.rmtree(former, ignore_errors=True)
    tenant.data.rename(former)
    (unpacked / "data").rename(tenant.data)
    shutil.rmtree(former)


def _unpack(file: Path, directory: Path) -> dict[str, Any]:
    """Unpack the archive; what tenant.json says. Nothing of it gets outside of the directory."""
    (directory / "data").mkdir(mode=0o700)
    try:
        with _opened(file, "r:gz") as archive:
            members = archive.getmembers()
            # Links above all: the filter of Python before 3.11.13 can be led out by them (CVE-2025-4517).
            if other := next((each for each in members if not each.isreg() or not _is_of_a_backup(each.name)), None):
                raise ValueError(f"it has {other.name!r}, which no backup has.")
            archive.extractall(directory, members, filter="data")
        described: Any = json.loads((directory / "tenant.json").read_text())
    except (OSError, tarfile.TarError, ValueError, EOFError) as error:
        raise TenantError(f"{file} is no backup of a tenant: {error}") from error
    if not isinstance(described, dict) or described.get("format") != _FORMAT:
        raise TenantError(f"{file} has a format that this version does not know.")
    for path in directory.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return described


def _is_of_a_backup(name: str) -> bool:
    first, *others = name.split("/")
    if not others:
        return name in ("tenant.json", "tenant.env", _DUMP)
    return first == "data" and not {"", ".", ".."} & set(others)


def _is_kept(path: Path) -> bool:
    is_database = path.name.split("-")[0].endswith(".sqlite3") and len(path.parts) == 1
    return not is_database and path.parts[0] not in _NOT_KEPT and not path.name.startswith(".")


def _copy_sqlite(source: Path, target: Path) -> None:
    if not source.exists():
        raise TenantError(f"{source} is missing.")
    private_files.write(target, b"")
    with closing(sqlite3.connect(source, timeout=20)) as read, closing(sqlite3.connect(target)) as copy:
        read.backup(copy)
        # A file that is read on another machine needs no log beside it.
        copy.execute("PRAGMA journal_mode=DELETE")
        if (found := copy.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
            raise TenantError(f"{source} is damaged: {found}")


def _run(program: str, *arguments: str, url: str = "") -> None:
    """Run a program of PostgreSQL, with the database of the URL; the password in it is no argument that others see."""
    if shutil.which(program) is None:
        raise TenantError(f"{program} is not installed; it comes with PostgreSQL's client programs.")
    environment, place = _connection(url) if url else ({}, "")
    words = [program, *([f"--dbname={place}"] if url else []), *arguments]
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TenantError(f"{program} failed: {done.stderr.strip()}")


def _connection(url: str) -> tuple[dict[str, str], str]:
    """The environment with the password, and the connection that Django makes for the URL, as a text of libpq."""
    found = Environment.database(url)
    given = {"host": found["HOST"], "port": found["PORT"], "user": found["USER"], "dbname": found["NAME"]}
    given |= found.get("OPTIONS", {})
    place = " ".join(f"{name}={_quoted(value)}" for name, value in given.items() if value != "")
    return ({"PGPASSWORD": found["PASSWORD"]} if found["PASSWORD"] else {}), place


def _quoted(value: object) -> str:
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o600
    archive.addfile(entry, io.BytesIO(content))


@contextmanager
def _opened(path: Path, mode: Any) -> Iterator[tarfile.TarFile]:
    file: IO[bytes]
    with path.open("rb" if mode.startswith("r") else "xb") as file, tarfile.open(fileobj=file, mode=mode) as archive:
        yield archive
