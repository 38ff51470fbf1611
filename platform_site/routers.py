"""The router of the databases: default, broker, replicas."""

from __future__ import annotations

from typing import Any

from django.conf import settings


def written_databases() -> list[str]:
    """Aliases of the databases that the platform writes: all but the replicas."""
    return [alias for alias in settings.DATABASES if alias not in settings.DATABASE_REPLICAS]


class DatabaseRouter:
    """Routes django-q2 to the broker database where there is one, all other apps to the default database."""

    def _broker(self) -> str | None:
        return "broker" if "broker" in settings.DATABASES else None

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        """The database to read the model from."""
        return self._broker() if model._meta.app_label == "django_q" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        """The broker has only django-q2's tables, the default database has all.

        The django-q2 tables of the default database are unused while there is a broker, and used when REDIS_URL is set.
        Replicas have the tables of the default database.
        """
        if db in settings.DATABASE_REPLICAS:
            return False
        return app_label == "django_q" or db != "broker"
