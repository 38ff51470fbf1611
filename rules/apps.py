"""Django app."""

from django.apps import AppConfig
from django.core.signals import request_finished


class RulesConfig(AppConfig):
    """User business rules: subscribes to the domain's events, and holds rules to their validation."""

    name = "rules"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from domain.dataset.records import dispatch
        from rules import checks, operations, statistics, trace_log, validation  # noqa: F401  (checks and operations register)
        from rules.engine import engine

        validation.register()
        dispatch.subscribe(engine)
        request_finished.connect(statistics.flush_if_due, dispatch_uid="rules.statistics")
        request_finished.connect(trace_log.flush_if_any, dispatch_uid="rules.trace_log")
