"""Django app of the domain."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class DomainConfig(AppConfig):
    """Discovers the repositories of every app and checks their declarations."""

    name = "domain"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from domain import access_hooks, tasks
        from domain.model import checks  # noqa: F401  (registers the system checks)
        from domain.model.registry import discover
        from domain.odata import import_operation, standard_operations  # noqa: F401  (registers the operations)

        discover()
        access_hooks.register()
        post_migrate.connect(tasks.ensure_schedule, dispatch_uid="domain.tasks.ensure_schedule")
