"""Django app of the foundation."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class FoundationConfig(AppConfig):
    """Owns the table of cache versions, and writes the schedules of all apps."""

    name = "foundation"

    def ready(self) -> None:
        """Keep the scheduled tasks of all apps in the broker's database."""
        from foundation.schedules import ensure_schedules

        post_migrate.connect(ensure_schedules, dispatch_uid="foundation.schedules")
