"""Backups of tenants: one archive with a consistent copy of the database, the keys and the files.

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
from platform_site.tenants.directory import CREATE, RESTORE, SQLITE, Tenant, add, check_name, remove, settings_get
from platform_site.tenants.tenant_settings import TenantError

_FORMAT: Final = 1
_DUMP: Final = "database.dump"
#: Files that an instance creates again (docs/operations.md, "Back up and restore").
_EXCLUDED: Final = frozenset(
    {"cache", "metrics", "static", "counters.bin", "temporary_texts.bin", "change_signals.bin", "prepare.lock"}
)


def back_up(tenant: Tenant, file: Path) -> None:
    """Write the archive, readable by this user only; the tenant may be served. Raises TenantError."""
    with tenant.used():
        _write_archive(tenant, file)


def _write_archive(tenant: Tenant, file: Path) -> None:
    url = settings_get(tenant).values.get("DATABASE_URL", "")
    with tempfile.TemporaryDirectory(dir=file.absolute().parent, prefix=f".{file.name}-") as directory:
        written = Path(directory) / "archive"
        described = {"format": _FORMAT, "name": tenant.name, "database": "postgresql" if url else "sqlite"}
        with _open_archive(written, "w:gz") as archive:
            _add_bytes(archive, "tenant.json", json.dumps(described).encode())
            _add_bytes(archive, "tenant.env", tenant.settings_file.read_bytes())
            # The database first, so that the archive has every key that the database refers to.
            copy = Path(directory) / "database"
            if url:
                _run("pg_dump", "--format=custom", "--no-owner", f"--file={copy}", url=url)
                archive.add(copy, _DUMP)
            else:
                _copy_sqlite(tenant.data / SQLITE, copy)
                archive.add(copy, f"data/{SQLITE}")
            for path in sorted(tenant.data.rglob("*")):
                if _is_included(path.relative_to(tenant.data)) and path.is_file() and not path.is_symlink():
                    archive.add(path, f"data/{path.relative_to(tenant.data)}", recursive=False)
        with written.open("rb+") as flushed:
            os.fsync(flushed.fileno())
        written.chmod(0o600)
        written.replace(file)


def restore(name: str, file: Path, root: Path, database_url: str = "") -> Tenant:
    """Restore the tenant from the archive; it is stopped during that. Call within `directory_lock`.

    An existing tenant keeps its settings. A new one gets those of the archive, but the operator names its PostgreSQL
    database: an archive must not decide which database is overwritten. Raises TenantError.
    """
    check_name(name)
    for left in root.glob(".restored-*"):  # by a killed command; it has keys
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=root, prefix=".restored-") as directory:
        unpacked = Path(directory)
        described = _unpack(file, unpacked)
        if described.get("name") != name:
            # The tenants would have the same keys, and each would accept the tokens of the other.
            raise TenantError(f"{file} is a backup of {described.get('name')!r}, and is restored as that only.")
        tenant = Tenant(root / name)
        is_new = not tenant.path.exists() or tenant.unfinished == CREATE
        if is_new:
            add(name, _settings_of_new(name, Tenant(unpacked).settings(), database_url), RESTORE)
        elif database_url:
            raise TenantError(f"{name} keeps its settings: without --database-url.")
        try:
            with tenant.stopped():
                _replace(tenant, unpacked, described.get("database", ""))
        except BaseException:
            if is_new:
                remove(tenant)
            raise
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
        # In one transaction, so that a failed restore changes nothing. Drops the objects created after the backup, too.
        script = unpacked / "database.sql"
        _run("pg_restore", "--no-owner", f"--file={script}", str(unpacked / _DUMP))
        begin = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
        words = ("--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--command={begin}")
        # The new database cannot be read with the former keys.
        before = tenant.unfinished
        tenant.mark_unfinished(RESTORE)
        try:
            _run("psql", *words, f"--file={script}", url=url)
        except TenantError:
            tenant.mark_unfinished(before)
            raise
    # The whole directory: the broker's tasks and the caches belong to the replaced state.
    tenant.replace_data(unpacked / "data")


def _unpack(file: Path, directory: Path) -> dict[str, Any]:
    """Unpack the archive into the directory, and nowhere else; returns the content of tenant.json."""
    (directory / "data").mkdir(mode=0o700)
    try:
        with _open_archive(file, "r:gz") as archive:
            members = archive.getmembers()
            # Refuses links above all: with them, the filter of Python before 3.11.13 can be escaped (CVE-2025-4517).
            if other := next((each for each in members if not each.isreg() or not _is_backup_member(each.name)), None):
                raise ValueError(f"it has {other.name!r}, which no backup has.")
            archive.extractall(directory, members, filter="data")
        described: Any = json.loads((directory / "tenant.json").read_text())
    except (OSError, tarfile.TarError, ValueError, EOFError) as error:
        raise TenantError(f"{file} is no backup of a tenant: {error}") from error
    if not isinstance(described, dict) or described.get("format") != _FORMAT:
        raise TenantError(f"{file} has a format that this version does not know.")
    for path in directory.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        if path.is_file():
            with path.open("rb+") as unpacked:
                os.fsync(unpacked.fileno())  # before the former files are removed
    return described


def _is_backup_member(name: str) -> bool:
    first, *others = name.split("/")
    if not others:
        return name in ("tenant.json", "tenant.env", _DUMP)
    return first == "data" and not {"", ".", ".."} & set(others)


def _is_included(path: Path) -> bool:
    is_database = path.name.split("-")[0].endswith(".sqlite3") and len(path.parts) == 1
    return not is_database and path.parts[0] not in _EXCLUDED and not path.name.startswith(".")


def _copy_sqlite(source: Path, target: Path) -> None:
    if not source.exists():
        raise TenantError(f"{source} is missing.")
    private_files.write(target, b"")
    with closing(sqlite3.connect(source, timeout=20)) as read, closing(sqlite3.connect(target)) as copy:
        read.backup(copy)
        # A copy for another machine needs no write-ahead log beside it.
        copy.execute("PRAGMA journal_mode=DELETE")
        if (found := copy.execute("PRAGMA quick_check").fetchone()[0]) != "ok":
            raise TenantError(f"{source} is damaged: {found}")


def _run(program: str, *arguments: str, url: str = "") -> None:
    """Run a PostgreSQL program on the database of the URL. The password is in the environment: others see arguments."""
    if shutil.which(program) is None:
        raise TenantError(f"{program} is not installed; it comes with PostgreSQL's client programs.")
    environment, conninfo = _connection(url) if url else ({}, "")
    words = [program, *([f"--dbname={conninfo}"] if url else []), *arguments]
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TenantError(f"{program} failed: {done.stderr.strip()}")


def _connection(url: str) -> tuple[dict[str, str], str]:
    """(environment with the password, libpq connection string) of the URL."""
    found = Environment.database(url)
    given = {"host": found["HOST"], "port": found["PORT"], "user": found["USER"], "dbname": found["NAME"]}
    given |= found.get("OPTIONS", {})
    conninfo = " ".join(f"{name}={_quoted(value)}" for name, value in given.items() if value != "")
    return ({"PGPASSWORD": found["PASSWORD"]} if found["PASSWORD"] else {}), conninfo


def _quoted(value: object) -> str:
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o600
    archive.addfile(entry, io.BytesIO(content))


@contextmanager
def _open_archive(path: Path, mode: Any) -> Iterator[tarfile.TarFile]:
    file: IO[bytes]
    with path.open("rb" if mode.startswith("r") else "xb") as file, tarfile.open(fileobj=file, mode=mode) as archive:
        yield archive
