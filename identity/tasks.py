"""Scheduled tasks of identity."""

from __future__ import annotations

from django_q.models import Schedule

from foundation.pruning import pruners
from foundation.schedules import scheduled
from identity.oauth.issue import tokens_prune
from identity.oauth.pushed import pushed_requests_prune
from identity.sessions import browser_sessions_prune, sessions_prune, sessions_sweep
from identity.single_use import used_values_prune

pruners.add("sessions", sessions_sweep)
pruners.add("closed_sessions", sessions_prune)
pruners.add("browser_sessions", browser_sessions_prune)
pruners.add("tokens", tokens_prune)
pruners.add("used_values", used_values_prune)
pruners.add("pushed_requests", pushed_requests_prune)


@scheduled("identity: close expired sessions", Schedule.MINUTES, minutes=1)
def sweep() -> str:
    """Close expired sessions and delete expired tokens; returns a sentence for the task's row."""
    closed, removed = sessions_sweep(), sessions_prune() + browser_sessions_prune()
    expired = tokens_prune() + used_values_prune() + pushed_requests_prune()
    return f"{closed} sessions closed, {removed} forgotten, {expired} tokens removed"
