"""Django app."""

from django.apps import AppConfig


class ScriptsConfig(AppConfig):
    """The scripts app: registers operations, the validation of managed scripts, and the history of runs."""

    name = "scripts"

    def ready(self) -> None:
        from domain.model import attribute_scripts
        from scripts import operations, tasks, validation  # noqa: F401  (operations and tasks register themselves)
        from scripts.bridge import calls  # noqa: F401  (host calls register themselves)
        from scripts.calculated import CalculatedAttributes

        validation.register()
        attribute_scripts.register(CalculatedAttributes())
