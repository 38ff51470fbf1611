"""The test databases: migrated once, kept from one test run to the next, and soon empty again.

Migrating takes ten seconds in each test process of each run, and gives the same tables as long as the migrations are
the same. So the first process of the first run keeps a copy (on PostgreSQL a database beside the others), named by a
digest of all migrations, while the others wait; they and later runs start from the copy.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import django
import psycopg
from django.contrib.contenttypes.models import ContentType
from django.core.management.commands import flush, migrate
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.postgresql.operations import DatabaseOperations as PostgreSQLOperations

from platform_site.environment import BASE_DIR
from platform_site.serving.preparation import migrations_digest
from tests.support.instances import create_database, drop_database

_DIRECTORY = BASE_DIR / ".pytest_cache" / "databases"
_PREFIX = "kept_tests_"


class KeptDatabases:
    """The databases of one test process, around what pytest-django does: `restore`, its set-up, `ready`."""

    def __init__(self) -> None:
        self._making: IO[str] | None = None
        self._migrating_nothing = patch.object(migrate.Command, "handle", lambda self, *arguments, **options: None)

    def restore(self) -> bool:
        """Make the test databases from the copies; whether Django is to take files that are there.

        Where a copy is missing, it is this process's to make: others wait until it is `ready`.
        """
        _DIRECTORY.mkdir(parents=True, exist_ok=True)
        self._making = (_DIRECTORY / "lock").open("w")
        fcntl.flock(self._making, fcntl.LOCK_EX)
        if not all(map(_is_kept, connections.all())):
            return False
        for connection in connections.all():
            _put(connection)
        self._making.close()
        self._making = None
        # All is migrated; to look for what is left to do costs a second and a half for each database.
        self._migrating_nothing.start()
        return any(connection.vendor == "sqlite" for connection in connections.all())

    def ready(self) -> None:
        """After Django's set-up: keep the copies that were missing, and remember what is in the databases."""
        if self._making is None:
            self._migrating_nothing.stop()
        else:
            for connection in connections.all():
                _keep(connection)
            self._making.close()
            self._making = None
        remember_what_migrations_left()


def _is_kept(connection: BaseDatabaseWrapper) -> bool:
    if connection.vendor == "sqlite":
        return _copy(connection).exists()
    with _server(connection) as server:
        found = server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_PREFIX + _digest()])
        return found.fetchone() is not None


def _put(connection: BaseDatabaseWrapper) -> None:
    test = connection.settings_dict["TEST"]
    if connection.vendor == "sqlite":
        shutil.copyfile(_copy(connection), test["NAME"])
    else:
        test["TEMPLATE"] = _PREFIX + _digest()


def _keep(connection: BaseDatabaseWrapper) -> None:
    if connection.vendor == "sqlite":
        copy = _copy(connection)
        temporary = copy.with_suffix(f".{os.getpid()}")
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(temporary)])
        temporary.replace(copy)
        for outdated in set(_DIRECTORY.glob(f"{connection.alias}-*.sqlite3")) - {copy}:
            outdated.unlink(missing_ok=True)
        return
    connection.close()
    with _server(connection) as server:
        for (name,) in server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [_PREFIX]):
            drop_database(server, name)
        create_database(server, _PREFIX + _digest(), str(connection.settings_dict["NAME"]))


def _copy(connection: BaseDatabaseWrapper) -> Path:
    return _DIRECTORY / f"{connection.alias}-{_digest()}.sqlite3"


def _server(connection: BaseDatabaseWrapper) -> psycopg.Connection:
    parameters = {**connection.get_connection_params(), "dbname": "postgres"}
    wanted = {
        name: value for name, value in parameters.items() if name in ("dbname", "host", "port", "user", "password")
    }
    return psycopg.connect(**wanted, autocommit=True)


@cache
def _digest() -> str:
    # Schedules are in the broker's database if there is one, that is without Redis; else in the main one.
    made_of = f"{django.VERSION} {migrations_digest()} {sorted(connections)}"
    return hashlib.sha256(made_of.encode()).hexdigest()[:16]


#: Alias → statement and rows, for each table that migrations leave rows in.
_left_by_migrations: dict[str, list[tuple[str, list[tuple[Any, ...]]]]] = {}


def remember_what_migrations_left() -> None:
    """The rows of the test databases, which hold nothing else yet, for `flush_to_what_migrations_left`."""
    for connection in connections.all():
        quote = connection.ops.quote_name
        left = _left_by_migrations[connection.alias] = []
        with connection.cursor() as cursor:
            for table in connection.introspection.django_table_names(only_existing=True, include_views=False):
                cursor.execute(f"SELECT * FROM {quote(table)}")
                if rows := cursor.fetchall():
                    columns = [quote(column[0]) for column in cursor.description]
                    marks = ", ".join(["%s"] * len(columns))
                    left.append((f"INSERT INTO {quote(table)} ({', '.join(columns)}) VALUES ({marks})", rows))


def flush_to_what_migrations_left() -> None:
    """After the flush that follows a test that commits, insert again what migrations left.

    Django sends `post_migrate` instead, whose receivers compare types and permissions of two hundred tables with the
    empty database: a tenth of a second for each such test.
    """

    def insert(verbosity: int, interactive: bool, db: str, **_: Any) -> None:
        ContentType.objects.clear_cache()
        with transaction.atomic(using=db), connections[db].cursor() as cursor:
            for statement, rows in _left_by_migrations[db]:
                cursor.executemany(statement, rows)

    flush.emit_post_migrate_signal = insert  # type: ignore[attr-defined]


def flush_by_deleting() -> None:
    """Empty tables of PostgreSQL after a test that commits by DELETE, and only those that hold anything.

    Django truncates all of them: two hundred files made anew and synced for a dozen rows, six seconds for each test.
    Foreign keys are checked at the end of the transaction that flush runs in, so the order does not matter.
    """

    def sql_flush(
        self: PostgreSQLOperations,
        style: Any,
        tables: Sequence[str],
        *,
        reset_sequences: bool = False,
        allow_cascade: bool = False,
    ) -> list[str]:
        if reset_sequences or not tables:
            return truncating(self, style, tables, reset_sequences=reset_sequences, allow_cascade=allow_cascade)
        quoted = [self.quote_name(table) for table in tables]
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT " + ", ".join(f"EXISTS (SELECT 1 FROM {name})" for name in quoted))
            (holds_anything,) = cursor.fetchall()
        return [f"DELETE FROM {name}" for name, holds in zip(quoted, holds_anything, strict=True) if holds]

    truncating = PostgreSQLOperations.sql_flush
    PostgreSQLOperations.sql_flush = sql_flush  # type: ignore[method-assign, assignment]
