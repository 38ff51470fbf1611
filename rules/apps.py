"""Django app."""

from django.apps import AppConfig


class RulesConfig(AppConfig):
    """The rules app: subscribes to the domain's events and registers the validation of rules."""

    name = "rules"

    def ready(self) -> None:
        from domain.dataset.records import dispatch
        from rules import checks, operations, starting, validation  # noqa: F401  (they register themselves)
        from rules.engine import engine

        validation.register()
        dispatch.subscribe(engine)
