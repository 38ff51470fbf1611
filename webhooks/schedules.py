"""What the task cluster does for webhooks by the clock; the pump (webhooks.pump) sees to everything more frequent."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django_q.models import Schedule

#: name → (function, minutes between runs)
SCHEDULES = {
    "webhooks: sweep": ("webhooks.tasks.sweep_due", 1),
    "webhooks: prune": ("webhooks.tasks.prune", 24 * 60),
}


def ensure_schedules(sender: Any, using: str, **kwargs: Any) -> None:
    """Called after migrations: each schedule is in the broker's database exactly once."""
    broker = "broker" if "broker" in settings.DATABASES else "default"
    if getattr(sender, "name", "") != "django_q" or using != broker:
        return
    for name, (function, minutes) in SCHEDULES.items():
        Schedule.objects.using(broker).update_or_create(
            name=name, defaults={"func": function, "schedule_type": Schedule.MINUTES, "minutes": minutes}
        )
