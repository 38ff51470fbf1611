"""Django app."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class IdentityConfig(AppConfig):
    """The identity app."""

    name = "identity"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect what drops caches, and keep the sweep on the worker's schedule."""
        from identity import changes, tasks

        changes.connect()
        post_migrate.connect(tasks.ensure_schedule, dispatch_uid="identity.tasks.ensure_schedule")
