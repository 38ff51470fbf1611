"""What the worker does for identity: every minute, expired sessions and tokens."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django_q.models import Schedule

from identity.oauth.issue import tokens_prune
from identity.sessions import browser_sessions_prune, sessions_prune, sessions_sweep

_NAME = "identity: close expired sessions"


def sweep() -> str:
    """Close expired sessions and remove tokens nobody can use any more; a sentence for the task's record."""
    closed, removed = sessions_sweep(), sessions_prune() + browser_sessions_prune()
    return f"{closed} sessions closed, {removed} forgotten, {tokens_prune()} tokens removed"


def ensure_schedule(sender: Any, using: str, **kwargs: Any) -> None:
    """Called after migrations: the sweep is in the broker's schedule exactly once."""
    broker = "broker" if "broker" in settings.DATABASES else "default"
    if getattr(sender, "name", "") != "django_q" or using != broker:
        return
    Schedule.objects.using(broker).update_or_create(
        name=_NAME, defaults={"func": "identity.tasks.sweep", "schedule_type": Schedule.MINUTES, "minutes": 1}
    )
