"""Django app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AuditConfig(AppConfig):
    """The audit app."""

    name = "audit"
    verbose_name = _("Audit")

    def ready(self) -> None:
        from audit import tasks  # noqa: F401  (they register themselves)
