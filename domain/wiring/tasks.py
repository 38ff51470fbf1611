"""What the task cluster does for the domain by the clock: every hour, what is past its time."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django_q.models import Schedule

from domain.dataset.tables.change_feed import change_feed_prune
from domain.dataset.transactions.domain_transactions import transactions_expire

_NAME = "domain: prune change feed and transactions"


def prune() -> str:
    """Remove old entries of the change feed and abandoned Domain transactions; a sentence for the task's record."""
    return f"{change_feed_prune()} changes and {transactions_expire()} transactions removed"


def ensure_schedule(sender: Any, using: str, **kwargs: Any) -> None:
    """Called after migrations: the hourly task is in the broker's schedule exactly once."""
    broker = "broker" if "broker" in settings.DATABASES else "default"
    if getattr(sender, "name", "") != "django_q" or using != broker:
        return
    Schedule.objects.using(broker).update_or_create(
        name=_NAME, defaults={"func": "domain.wiring.tasks.prune", "schedule_type": Schedule.HOURLY}
    )
