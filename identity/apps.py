"""Django app."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    """The identity app."""

    name = "identity"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect cache invalidation and schedule the sweep."""
        from identity import changes, tasks  # noqa: F401  (tasks are scheduled)

        changes.connect()
