"""What the task cluster does for scripts by the clock (spec 04, 4.4)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django_q.models import Schedule

from scripts import history

_NAME = "scripts: prune history"


def prune() -> str:
    """Delete runs older than SCRIPT_HISTORY_DAYS; a sentence for the task's record."""
    return f"{history.prune()} runs deleted"


def ensure_schedule(sender: Any, using: str, **kwargs: Any) -> None:
    """Called after migrations: the daily task is in the broker's schedule exactly once."""
    broker = "broker" if "broker" in settings.DATABASES else "default"
    if getattr(sender, "name", "") != "django_q" or using != broker:
        return
    Schedule.objects.using(broker).update_or_create(
        name=_NAME, defaults={"func": "scripts.tasks.prune", "schedule_type": Schedule.DAILY}
    )
