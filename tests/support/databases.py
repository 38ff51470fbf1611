"""Migrated SQLite databases, kept from one test run to the next.

Migrating takes ten seconds in each test process of each run, and gives the same tables as long as the migrations are
the same. So the first run keeps a copy, named by a digest of all migrations, and later ones start from the copy. On
PostgreSQL every run migrates.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.db import connections
from django.db.backends.postgresql.operations import DatabaseOperations as PostgreSQLOperations
from django.db.models.signals import post_migrate

from domain.dataset.tables.history import RepositoryTracking
from foundation.fields import utc_now
from platform_site.environment import BASE_DIR
from platform_site.serving.preparation import migrations_digest

_DIRECTORY = BASE_DIR / ".pytest_cache" / "databases"


def restore() -> bool:
    """Put the kept copies where Django expects the test databases; whether there were any to put."""
    copies = _copies()
    if not copies or not all(copy.exists() for copy in copies.values()):
        return False
    for alias, copy in copies.items():
        test = connections[alias].settings_dict["TEST"]
        try:
            shutil.copyfile(copy, test["NAME"])
        except FileNotFoundError:
            return False  # another run, of newer migrations, has just removed it
        # All is migrated; to look for what is left to do costs a second and a half for each database.
        test["MIGRATE"] = False
    return True


def keep() -> None:
    """Copy the test databases, just migrated. Processes that do so at once each put a whole file in place."""
    copies = _copies()
    if not copies:
        return
    _DIRECTORY.mkdir(parents=True, exist_ok=True)
    for outdated in set(_DIRECTORY.glob("*.sqlite3")) - set(copies.values()):
        outdated.unlink(missing_ok=True)
    for alias, copy in copies.items():
        temporary = copy.with_suffix(f".{os.getpid()}")
        with connections[alias].cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(temporary)])
        temporary.replace(copy)


def _copies() -> dict[str, Path]:
    """Alias → file of the copy; empty where not all databases are SQLite."""
    if any(connection.vendor != "sqlite" for connection in connections.all()):
        return {}
    digest = hashlib.sha256(f"{django.VERSION} {sorted(settings.DATABASES)} {migrations_digest()}".encode()).hexdigest()
    return {alias: _DIRECTORY / f"{alias}-{digest[:16]}.sqlite3" for alias in connections}


def begin_history_after_flush() -> None:
    """Write again what the domain's migration writes, after the flush that follows a test that commits."""

    def begin(using: str, **_: Any) -> None:
        if using == "default":
            RepositoryTracking.objects.get_or_create(repository_name="*", defaults={"tracked_since": utc_now()})

    post_migrate.connect(begin, sender=apps.get_app_config("domain"), weak=False)


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
