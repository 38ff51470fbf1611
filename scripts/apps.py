"""Django app."""

from django.apps import AppConfig
from django.core.signals import request_finished
from django.db.models.signals import post_migrate


class ScriptsConfig(AppConfig):
    """JavaScript: its operations, the checks of managed scripts, the history of runs."""

    name = "scripts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from scripts import history, operations, tasks, validation  # noqa: F401  (operations register themselves)
        from scripts.bridge import calls  # noqa: F401  (host calls register themselves)

        validation.register()
        request_finished.connect(history.flush_if_free, dispatch_uid="scripts.history")
        post_migrate.connect(tasks.ensure_schedule, dispatch_uid="scripts.tasks.ensure_schedule")
