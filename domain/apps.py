"""Django app of the domain."""

from django.apps import AppConfig


class DomainConfig(AppConfig):
    """Discovers the repositories of every app and checks their declarations."""

    name = "domain"

    def ready(self) -> None:
        from domain.entities.custom_entities import live
        from domain.model import checks  # noqa: F401  (registers the system checks)
        from domain.model.registry import discover
        from domain.odata.invoke import import_operation, plan_operation  # noqa: F401  (registers the operations)
        from domain.odata.operations import adjustments, data_objects, documents, properties, standard  # noqa: F401
        from domain.wiring import access_hooks, failure_messages, tasks  # noqa: F401  (tasks are scheduled)
        from foundation.failures import report_failures_to

        discover()
        access_hooks.register()
        live.start()
        report_failures_to(failure_messages.leave_message)
