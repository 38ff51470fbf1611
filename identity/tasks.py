"""Scheduled tasks of identity."""

from __future__ import annotations

from django_q.models import Schedule

from foundation.pruning import scheduled_pruning
from identity.oauth.issue import tokens_prune
from identity.oauth.pushed import pushed_requests_prune
from identity.sessions import browser_sessions_prune, sessions_prune, sessions_sweep
from identity.single_use import used_values_prune

sweep = scheduled_pruning(
    "identity: close expired sessions",
    f"{__name__}.sweep",
    Schedule.MINUTES,
    {
        "sessions": sessions_sweep,
        "closed_sessions": sessions_prune,
        "browser_sessions": browser_sessions_prune,
        "tokens": tokens_prune,
        "used_values": used_values_prune,
        "pushed_requests": pushed_requests_prune,
    },
    minutes=1,
)
