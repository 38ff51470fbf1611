"""Django app."""

from django.apps import AppConfig


class RulesConfig(AppConfig):
    """The rules app: subscribes to the domain's events and registers the validation of rules."""

    name = "rules"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from domain.dataset.records import dispatch
        from rules import checks, operations, validation  # noqa: F401  (checks and operations register)
        from rules.engine import engine

        validation.register()
        dispatch.subscribe(engine)
