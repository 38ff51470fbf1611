"""Django app."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """The jobs app: registers the job types, the validation of jobs, their operations and tasks."""

    name = "jobs"

    def ready(self) -> None:
        from jobs import operations, tasks, types, validation  # noqa: F401  (they register themselves)

        validation.register()
