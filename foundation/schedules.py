"""Scheduled tasks of the task cluster (django-q2): each function is scheduled exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django_q.models import Schedule

from foundation.catalogue import Catalogue

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """A function by its dotted path, as django-q2 calls it, and its interval: a Schedule type, minutes for MINUTES."""

    path: str
    schedule_type: str
    minutes: int | None


scheduled_tasks: Catalogue[ScheduledTask] = Catalogue("scheduled task", pattern=r"\w+: [\w ]+")


def scheduled(name: str, schedule_type: str, *, minutes: int | None = None) -> Callable[[F], F]:
    """Decorator: schedule the function in the task cluster. AppConfig.ready imports the function's module."""

    def register(task: F) -> F:
        path = f"{task.__module__}.{task.__qualname__}"
        scheduled_tasks.add(name, ScheduledTask(path, schedule_type, minutes))
        return task

    return register


def ensure_schedules(sender: Any, using: str, **kwargs: Any) -> None:
    """Write the schedules into the broker's database; called after migrations."""
    broker = "broker" if "broker" in settings.DATABASES else "default"
    if getattr(sender, "name", "") != "django_q" or using != broker:
        return
    for name in scheduled_tasks.names():
        task = scheduled_tasks[name]
        Schedule.objects.using(broker).update_or_create(
            name=name,
            defaults={"func": task.path, "schedule_type": task.schedule_type, "minutes": task.minutes},
        )
