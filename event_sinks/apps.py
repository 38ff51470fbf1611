"""Django app."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EventSinksConfig(AppConfig):
    """The event_sinks app: registers the task that delivers."""

    name = "event_sinks"
    verbose_name = _("Event sinks")

    def ready(self) -> None:
        from event_sinks import tasks  # noqa: F401  (it is scheduled)
